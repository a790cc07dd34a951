"""Who stopped a rollout from outside, and why.

A plain task cancellation has no reason; the pool hands each of its tasks a `Stop`, so that a cancelled rollout can
end as an outcome with its reason instead of vanishing.
"""

from __future__ import annotations

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
