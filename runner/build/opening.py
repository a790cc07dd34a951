"""`Opened`: resources that were opened, and are closed in the reverse order whatever happens.

Opening and closing happen in one task, for resources that hold a task group. What a resource raises when it is closed
is reported, never raised, and it never sees the exceptions of the work: it could swallow them.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

from runner.graders.threads import Threads

if TYPE_CHECKING:
    from runner.build.live import ResourcePart

CLOSE_SECONDS = 30.0
"""How long one resource may take to close."""

_THREADS = Threads()

_Close = Callable[[], Awaitable[Any]]


class Opened:
    """The resources of a run or of one rollout. `values` has them by name, those of `around` included."""

    def __init__(self, around: Mapping[str, Any] | None = None) -> None:
        self.values: dict[str, Any] = dict(around or {})
        self._closers: list[tuple[str, _Close]] = []

    async def open(self, part: ResourcePart) -> None:
        """Open one resource. Raises whatever its code raises, and `TypeError` when it gives no context manager.

        A cancellation that nobody asked for is the resource's own fault: a `RuntimeError`.
        """
        try:
            await self._open(part)
        except asyncio.CancelledError as error:
            if _cancellations():
                raise
            raise RuntimeError("it raised CancelledError, though nobody cancelled it") from error

    async def _open(self, part: ResourcePart) -> None:
        made = part.open(**part.arguments)
        if inspect.isawaitable(made):
            made = await made
        if hasattr(made, "__aenter__"):
            value = await made.__aenter__()
            close: _Close = lambda: made.__aexit__(None, None, None)  # noqa: E731
        elif hasattr(made, "__enter__"):
            entry = _Entry(made)
            value, close = await entry.enter(), entry.leave
        else:
            raise TypeError(f"it gave {type(made).__name__}, which is no context manager")
        self.values[part.name] = value
        self._closers.append((part.name, close))

    async def close(self, seconds: float = CLOSE_SECONDS) -> list[tuple[str, BaseException]]:
        """Close everything, each within `seconds`, and return what could not be closed, by name.

        Raises nothing but cancellation from outside, and that only when everything was asked to close.
        """
        failures: list[tuple[str, BaseException]] = []
        cancelled: asyncio.CancelledError | None = None
        while self._closers:
            name, close = self._closers.pop()
            before = _cancellations()
            deadline = asyncio.timeout(seconds)
            try:
                async with deadline:
                    await close()
            except asyncio.CancelledError as error:
                if _cancellations() > before:
                    cancelled = error
                failures.append((name, error))
            except TimeoutError as error:
                text = f"not closed within {seconds:g} s"
                failures.append((name, TimeoutError(text) if deadline.expired() else error))
            except (Exception, SystemExit) as error:
                failures.append((name, error))
        if cancelled is not None:
            raise cancelled
        return failures


def _cancellations() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task is not None else 0


class _Entry:
    """A synchronous context manager, entered and left in threads.

    A thread cannot be stopped. If nobody waits for it any more when it has entered, it leaves again by itself.
    """

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._lock = Lock()
        self._entered = False
        self._unwanted = False

    async def enter(self) -> Any:
        try:
            return await _THREADS.run(self._enter)
        except asyncio.CancelledError:
            with self._lock:
                self._unwanted, entered = True, self._entered
            if entered:
                await self.leave()
            raise

    async def leave(self) -> None:
        await _THREADS.run(lambda: self._manager.__exit__(None, None, None))

    def _enter(self) -> Any:
        value = self._manager.__enter__()
        with self._lock:
            self._entered, unwanted = True, self._unwanted
        if unwanted:
            self._manager.__exit__(None, None, None)
        return value
