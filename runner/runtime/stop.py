"""Who stopped a rollout from outside, and why.

A plain task cancellation has no reason; the pool hands each of its tasks a `Stop`, so that a cancelled rollout can
end as an outcome with its reason instead of vanishing.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar


class Stop:
    """A reason to stop, set before the task is cancelled: "cancelled", "shutdown" or "budget".

    `grace`, in seconds, shortens the time that cancelled work gets to clean up; None leaves it as it is.
    """

    __slots__ = ("grace", "reason")

    def __init__(self) -> None:
        self.reason: str | None = None
        self.grace: float | None = None


current_stop: ContextVar[Stop | None] = ContextVar("current_stop", default=None)
"""The `Stop` of the running task; set by the pool in the task's own context, so it needs no reset."""


def reason_to_stop() -> str:
    """Why the running task was cancelled; it goes on as one that was not, since what comes of it has to be written.

    Call it where a `CancelledError` was caught. Raises one if nobody gave a reason: that cancellation is passed on.
    """
    stop, task = current_stop.get(), asyncio.current_task()
    if stop is None or stop.reason is None or task is None:
        raise asyncio.CancelledError
    while task.uncancel() > 0:
        pass  # asked more than once
    return stop.reason
