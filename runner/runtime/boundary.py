"""An exception becomes a `Failure` at a boundary, once, in one place.

User code raises plain Python errors. Whoever calls it wraps the call in `boundary(...)`; an error that already knows
its boundary (a `RolloutError`) passes through, anything else is attributed to the boundary it crossed.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.records.failure import Boundary, Failure, RolloutError

_OURS = str(Path(__file__).resolve().parent.parent)


class Attributed(Exception):
    """A foreign error that crossed a boundary, with its `Failure`."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@contextmanager
def boundary(name: Boundary, kind: str) -> Iterator[None]:
    """Attribute any foreign exception inside to `name`, with this kind.

    Cancellation from outside passes; a `CancelledError` that the code raised by itself is its own fault.
    """
    try:
        yield
    except (RolloutError, Attributed):
        raise
    except asyncio.CancelledError as error:
        if _cancelled_from_outside():
            raise
        raise Attributed(_failure(name, kind, error)) from error
    except (Exception, SystemExit) as error:
        raise Attributed(_failure(name, kind, error)) from error


def failure_of(error: BaseException, name: Boundary = "workflow", kind: str = "agent_error") -> Failure:
    """The `Failure` of any exception; `name` and `kind` serve for one that knows neither."""
    if isinstance(error, Attributed):
        return error.failure
    if isinstance(error, RolloutError):
        return Failure(error.boundary, error.kind, str(error), where=error.where, detail=_cause(error))
    return _failure(name, kind, error)


def _failure(name: Boundary, kind: str, error: BaseException) -> Failure:
    text = str(error)
    message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if isinstance(error, asyncio.CancelledError):
        message = "CancelledError was raised by the code itself, nobody cancelled the rollout"
    return Failure(name, kind, message, where=user_frame(error), detail=_trace(error))


def _cancelled_from_outside() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def user_frame(error: BaseException) -> str:
    """`file:line in function` of the innermost frame that is not the runner's own; empty without one."""
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if not frame.filename.startswith((_OURS, sys.prefix, sys.base_prefix, "<frozen")):
            place = f"{frame.filename}:{frame.lineno} in {frame.name}"
    return place


def _trace(error: BaseException) -> str:
    return "".join(traceback.format_exception(error, limit=-8))[-4000:]


def _cause(error: BaseException) -> str:
    return _trace(error.__cause__) if error.__cause__ is not None else ""
