"""How many rollouts at once, who waits, drain and cancel.

Work is pulled lazily, one item per free place, so a dataset larger than memory never queues up here.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any, TypeVar

from runner.runtime.stop import Stop, current_stop

T = TypeVar("T")


class Pool:
    """Plays items of work, at most `concurrency` at once, in the order they come."""

    def __init__(self, concurrency: int) -> None:
        if concurrency < 1:
            raise ValueError("concurrency must be at least 1")
        self.concurrency = concurrency
        self._tasks: dict[asyncio.Task[None], Stop] = {}
        self._draining = False
        self._idle = asyncio.Event()
        self._error: BaseException | None = None

    @property
    def running(self) -> int:
        """How many are being played now."""
        return len(self._tasks)

    async def run(self, work: Iterable[T], play: Callable[[T], Coroutine[Any, Any, None]]) -> None:
        """Play all of `work`; returns when nothing runs any more.

        An exception of `play` or of the work's iterator is ours, not a rollout's: it stops the pool, cancels what
        runs, and is raised. Cancelling this call cancels what runs.
        """
        items = iter(work)
        try:
            while not self._draining and self._fill(items, play):
                await self._one_ended()
            while self._tasks:
                await self._one_ended()
            self._raise_error()
        except BaseException:
            self.cancel()
            await self._settle()
            raise

    def drain(self) -> None:
        """Start nothing new; let what runs end."""
        self._draining = True
        self._idle.set()

    def cancel(self, reason: str = "cancelled") -> None:
        """Start nothing new and cancel what runs; a rollout then ends "cancelled" with this reason."""
        self.drain()
        for task, stop in list(self._tasks.items()):
            if stop.reason is None:
                stop.reason = reason
                task.cancel()

    def _fill(self, items: Iterator[T], play: Callable[[T], Coroutine[Any, Any, None]]) -> bool:
        while len(self._tasks) < self.concurrency:
            try:
                item = next(items)
            except StopIteration:
                return False
            self._start(item, play)
            if self._draining:
                return False
        return True

    def _start(self, item: T, play: Callable[[T], Coroutine[Any, Any, None]]) -> None:
        stop = Stop()
        context = contextvars.copy_context()
        context.run(current_stop.set, stop)
        task = asyncio.get_running_loop().create_task(play(item), context=context)
        self._tasks[task] = stop
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        stop = self._tasks.pop(task)
        error = _lost(stop) if task.cancelled() else task.exception()
        if error is not None and self._error is None:
            self._error = error
        self._idle.set()

    async def _one_ended(self) -> None:
        await self._idle.wait()
        self._idle.clear()
        self._raise_error()

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    async def _settle(self) -> None:
        """Wait for all that runs. Who cancels us meanwhile is in a hurry: what still cleans up is cancelled again."""
        while self._tasks:
            try:
                await asyncio.wait(list(self._tasks))
            except asyncio.CancelledError:
                for task in self._tasks:
                    task.cancel()
        self._error = None


def _lost(stop: Stop) -> BaseException | None:
    """What is wrong with a task that ended cancelled: nothing, if we had asked for it."""
    return None if stop.reason is not None else RuntimeError("a rollout was cancelled, but not by the pool it plays in")
