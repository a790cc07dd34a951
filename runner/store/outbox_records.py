"""What the outbox takes and gives: accepted rollouts, the callbacks they owe, and what became of them.

Times are Unix seconds. `attempt_id` is ours and unique; `rollout_id` is the controller's and need not be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from runner.records.quick import quick

Phase: TypeAlias = Literal["accepted", "held", "settled"]

CHANNELS = ("completion", "grader")
"""What callbacks are about, in the order in which a rollout's are posted."""


@quick
class Accepted:
    """A rollout whose start is answered. `keys` make a repeated request the same one; `worker` is who plays it."""

    attempt_id: str
    rollout_id: str
    dialect: str
    keys: tuple[str, ...]
    request: bytes
    accepted_at: float
    worker: int = 0


@quick
class Owed:
    """A callback that must be posted. `channel` is "completion" or "grader", `key` a bearer or None."""

    channel: str
    url: str
    body: bytes
    key: str | None = None


@quick
class Verdict:
    """How a rollout ended: `status` and `message` are what the status endpoint says."""

    status: str
    stop_reason: str
    reward: float | None
    message: str


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An accepted rollout without a verdict. `left` is what its agent left, if it had ended: only grade it then.

    `cancelled`: its controller has cancelled it, and no other verdict may be stored.
    """

    accepted: Accepted
    left: bytes | None
    cancelled: bool = False


@quick
class Delivery:
    """A callback still owed. Of one rollout's, the one with the lowest `order` goes first; `first_at` is since when."""

    attempt_id: str
    rollout_id: str
    channel: str
    order: int
    owed: Owed
    tries: int
    first_at: float
    next_at: float
    problem: str


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of an attempt. `undelivered` counts its callbacks that nobody has acknowledged.

    `cancelled`: it has no verdict yet, and can have no other than that it was cancelled.
    """

    attempt_id: str
    rollout_id: str
    worker: int
    phase: Phase
    verdict: Verdict | None
    undelivered: int
    cancelled: bool = False
