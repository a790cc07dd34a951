"""An exception becomes a `Failure` at a boundary, once, in one place.

User code raises plain Python errors. Whoever calls it does so in `with boundary(...)`; an error that already knows its
boundary (a `RolloutError`) passes through, anything else is attributed to the boundary it crossed. An error that was
raised `from` one that knows its boundary is that one's: wrapping a `ModelError` does not make it the agent's fault.
"""

from __future__ import annotations

import asyncio
import os
import traceback
from pathlib import Path
from sysconfig import get_paths
from types import TracebackType

from runner.records.failure import Boundary, Failure, RolloutError

_OURS = str(Path(__file__).resolve().parent.parent) + os.sep
_LIBRARIES = tuple({get_paths()[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_NOT_THE_USERS = (_OURS, *_LIBRARIES, "<frozen")

_MOST_CHARACTERS = 4_000
_PASSING = (KeyboardInterrupt, GeneratorExit)


class Attributed(Exception):
    """A foreign error that crossed a boundary, with its `Failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class boundary:  # noqa: N801 (it reads as the word it is: `with boundary("model", ...)`)
    """Attribute any foreign exception inside to `name`, with this kind: it leaves as `Attributed`.

    Cancellation from outside passes; a `CancelledError` that the code raised by itself is its own fault, and so is a
    `SystemExit`.
    """

    __slots__ = ("_kind", "_name")

    def __init__(self, name: Boundary, kind: str) -> None:
        self._name = name
        self._kind = kind

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, (RolloutError, Attributed, *_PASSING)):
            return
        if isinstance(error, asyncio.CancelledError) and cancelled_from_outside():
            return
        raise Attributed(failure_of(error, self._name, self._kind)) from error


def cancelled_from_outside() -> bool:
    """Whether somebody asked for the running task to be cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def failure_of(error: BaseException, name: Boundary = "workflow", kind: str = "agent_error") -> Failure:
    """The `Failure` of any exception; `name` and `kind` serve for one that knows neither."""
    if isinstance(error, Attributed):
        return error.failure
    known = _known(error)
    if isinstance(known, Attributed):
        return known.failure
    if known is not None:
        where = known.where or user_frame(known)
        detail = _trace(error) if where != known.where or error is not known or known.__cause__ is not None else ""
        return Failure(known.boundary, known.kind, _short(_said(known)), where=where, detail=detail)
    return Failure(name, kind, _short(_message(error)), where=user_frame(error), detail=_trace(error))


def _known(error: BaseException | None, depth: int = 0) -> RolloutError | Attributed | None:
    """The error itself, or the one it was raised from, that knows its boundary.

    A group counts only if each of its errors does: one foreign error among them is the fault of the code.
    """
    while error is not None and depth < 20:
        if isinstance(error, RolloutError | Attributed):
            return error
        if isinstance(error, BaseExceptionGroup):
            found = [_known(each, depth + 1) for each in error.exceptions]
            if all(each is not None for each in found):
                return found[0]
        error, depth = error.__cause__, depth + 1
    return None


def _message(error: BaseException) -> str:
    if isinstance(error, asyncio.CancelledError):
        return "CancelledError was raised by the code itself, nobody cancelled the rollout: raise another error"
    text = _said(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as second:  # the user's own __str__
        return f"(its message raised {type(second).__name__})"


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"


def user_frame(error: BaseException) -> str:
    """`file:line in function` of the innermost frame that is neither ours nor a library's; empty without one.

    An error that has none of its own is placed by the one it was raised from.
    """
    seen: BaseException | None = error
    for _ in range(20):
        if seen is None:
            break
        for frame in reversed(traceback.extract_tb(seen.__traceback__)):
            if not frame.filename.startswith(_NOT_THE_USERS):
                return f"{frame.filename}:{frame.lineno} in {frame.name}"
        seen = seen.__cause__
    return ""


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error, limit=-8))[-_MOST_CHARACTERS:]
