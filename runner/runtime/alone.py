"""`alone`: somebody else's coroutine in a task of its own, so that nothing it does to its task is done to ours.

A cancellation that it swallows, a deadline that it blocks past and a cancellation that it asks for itself are then
three different things, and none of them is taken for a result.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Literal, TypeAlias, TypeVar

from runner.runtime.stop import current_stop

T = TypeVar("T")

GRACE = 2.0
"""Seconds that cancelled work gets to clean up before it is ended by force."""

_abandoned: set[asyncio.Task[Any]] = set()
"""The event loop holds its tasks weakly: what we gave up must not be collected while it runs."""


_LATE = 0.05
"""Seconds after its deadline from which a wake-up is late because something held up the event loop."""

How: TypeAlias = Literal["", "blocked", "swallowed", "abandoned"]

_TOLD: dict[How, str] = {
    "": "",
    "blocked": "; the event loop stood still meanwhile: use `await` for what waits, `asyncio.to_thread` for what works",
    "swallowed": "; it swallowed its cancellation: after `except asyncio.CancelledError`, `raise` it again",
    "abandoned": "; it swallowed its cancellation, cannot be ended and runs on: `raise` a CancelledError again",
}


class DeadlinePassed(Exception):
    """The work had not ended in its time. `how` says what it did instead of ending; `told` tells its author.

    "blocked": it, or another, held up the event loop past the deadline; "swallowed": it went on after it was
    cancelled; "abandoned": it has not ended since, whatever was tried.
    """

    def __init__(self, how: How = "") -> None:
        super().__init__("the deadline has passed")
        self.how = how

    @property
    def told(self) -> str:
        """The end of a sentence that says the deadline has passed."""
        return _TOLD[self.how]


class SelfCancelled(Exception):
    """The work cancelled its own task; nobody had asked for that."""


async def alone(work: Coroutine[Any, Any, T], seconds: float | None = None, grace: float = GRACE) -> T:
    """What `work` returns or raises, if it ends within `seconds`.

    Raises `DeadlinePassed` even for work that ended late because it blocked the event loop or swallowed its
    cancellation; `SelfCancelled`; and cancellation from outside, when the work has ended or had its `grace`.
    """
    loop = asyncio.get_running_loop()
    end = None if seconds is None else loop.time() + seconds
    task = loop.create_task(work)
    try:
        await _until(loop, task, end)
    except asyncio.CancelledError:
        stop = current_stop.get()
        await _let_go(task, grace if stop is None or stop.grace is None else min(grace, stop.grace))
        raise
    late = end is not None and loop.time() > end + _LATE
    if not task.done():
        how = await _let_go(task, grace)
        raise DeadlinePassed("blocked" if late and not how else how)
    if end is not None and loop.time() > end:
        _hear(task)
        raise DeadlinePassed("blocked" if late else "")
    if task.cancelled():
        raise SelfCancelled
    return task.result()


async def _until(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any], end: float | None) -> None:
    """Return when `task` has ended, or at `end` on the loop's clock."""
    woken: asyncio.Future[None] = loop.create_future()

    def wake(_: Any = None) -> None:
        if not woken.done():
            woken.set_result(None)

    task.add_done_callback(wake)
    timer = None if end is None else loop.call_at(end, wake)
    try:
        await woken
    finally:
        if timer is not None:
            timer.cancel()
        task.remove_done_callback(wake)


async def _let_go(task: asyncio.Task[Any], grace: float) -> How:
    """Cancel `task` and wait for its end: how it took that. Another cancellation cuts its clean-up short."""
    loop = asyncio.get_running_loop()
    end = loop.time() + grace
    again = False
    task.cancel()
    while not task.done() and loop.time() < end:
        try:
            await _until(loop, task, end)
        except asyncio.CancelledError:
            again = True
            task.cancel()
    willing = task.done() and task.cancelled()
    ended = task.done() or await _force(task)
    if ended:
        _hear(task)
    else:
        _abandoned.add(task)
        task.add_done_callback(_forget)
    if again:
        raise asyncio.CancelledError
    return "" if willing else "swallowed" if ended else "abandoned"


async def _force(task: asyncio.Task[Any]) -> bool:
    """End work that swallows its cancellation: GeneratorExit passes an `except CancelledError`."""
    coroutine = task.get_coro()
    with suppress(BaseException):  # whatever it does now, nobody is left to hear it
        coroutine.close()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await asyncio.wait({task}, timeout=0.1)
    return task.done()


def _hear(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # heard, so that nothing is said about an exception that nobody retrieved


def _forget(task: asyncio.Task[Any]) -> None:
    _abandoned.discard(task)
    _hear(task)
