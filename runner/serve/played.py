"""`Played`: one accepted rollout while this process holds it in memory."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from runner.records.rollout import Outcome, RolloutRequest
from runner.runtime.stop import Stop
from runner.serve.dialects.dialect import Dialect
from runner.serve.start import Start

Phase: TypeAlias = Literal["accepting", "queued", "running", "grading", "settling"]


def label_of(rollout_id: str, attempt_id: str) -> str:
    """What an attempt is called where several of one id may play: unlike any other's."""
    return f"{rollout_id}~{attempt_id[-8:]}"


@dataclass(slots=True, eq=False)
class Played:
    """`attempt_id` is ours and names it everywhere inside; the wire's id may be anything, and may come again.

    `admitted` is when it was asked for, on the monotonic clock: its time runs from there, and is over at `until`.
    `label` names it to whoever looks on, where `name` may be another attempt's too. `mark` stands for the request's
    body, to tell a repeated start from another one under its name. `waiting` are told when it is on disk (None), or
    which attempt had its key before. `left` is what the agent left once it has ended; `told` says that the callback
    about that is stored, and may have been sent.
    """

    attempt_id: str
    dialect: Dialect
    start: Start
    request: RolloutRequest
    admitted: float
    mark: int = 0
    until: float | None = None
    keys: tuple[str, ...] = ()
    stop: Stop = field(default_factory=Stop)
    phase: Phase = "accepting"
    waiting: list[asyncio.Future[str | None]] = field(default_factory=list)
    task: asyncio.Task[None] | None = None
    left: Outcome | None = None
    told: bool = False
    has_slot: bool = False
    holding: asyncio.Task[None] | None = None
    label: str = ""
    name: str = field(init=False)
    """What the controller calls it."""

    def __post_init__(self) -> None:
        self.name = self.start.rollout_id
        self.label = self.label or self.name

    @property
    def status(self) -> str:
        """Its word for the status endpoint while it lives."""
        if self.phase == "settling" and self.stop.reason == "cancelled":
            return "cancelled"  # it can end no other way now
        if self.phase in ("accepting", "queued"):
            return "queued"
        return "running" if self.phase == "running" else "grading"
