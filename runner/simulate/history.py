"""`History`: everything that was said about one rollout, in both directions."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.simulate.starts import AGENT_LOOP, MULTI_SAMPLE, Ask

COMPLETION, GRADER = "completion", "grader"


@dataclass(frozen=True, slots=True)
class Said:
    """What one callback says. `status` is "success", "failure" or "cancelled" in every dialect."""

    channel: str
    status: str
    reward: float | None
    message: str
    category: str
    samples: Mapping[str, float | None]
    stop_reason: str = ""

    @property
    def value(self) -> tuple[object, ...]:
        """What may never change once it was sent."""
        return (self.status, self.reward, tuple(sorted(self.samples.items())))


@dataclass(slots=True)
class Channel:
    """One kind of callback of a rollout: what was said first, how often, and what we answered."""

    first: Said | None = None
    digest: bytes = b""
    tries: int = 0
    acknowledged: float | None = None
    """When an acknowledgement was sent that nothing kept from arriving."""
    closed: bool = False
    """It was answered with what may end it, though it is no acknowledgement."""
    not_before: float = 0.0
    """What we asked for with Retry-After, on the ledger's clock."""
    last_at: float = 0.0
    hurried: int = 0


@dataclass(slots=True)
class History:
    """One rollout. Times are seconds on the ledger's clock; None until it happened.

    `script` holds faults to commit, in order, by what they strike: "chat", "completion", "grader". `reply` is what the
    model says in this rollout, in place of everybody's answer. `sample_ids` counts the chat calls by sample.
    """

    ask: Ask
    rollout_id: str
    wire_id: str | None
    posted: float | None = None
    answered: float | None = None
    status: int = 0
    answer: bytes = b""
    starts: int = 0
    refusals: int = 0
    first_chat: float | None = None
    chats: int = 0
    first_turns: int = 0
    sample_ids: Counter[str] = field(default_factory=Counter)
    channels: dict[str, Channel] = field(default_factory=lambda: {COMPLETION: Channel(), GRADER: Channel()})
    verdict: Said | None = None
    verdict_at: float | None = None
    cancelled: float | None = None
    disposition: str = ""
    over: asyncio.Event = field(default_factory=asyncio.Event)
    script: dict[str, list[str]] = field(default_factory=dict)
    reply: Any = None
    report: Mapping[str, Any] | None = None
    """The `trajectory` to acknowledge with."""
    bodies: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    excused: bool = False
    """The server was killed while this rollout was under way: it may repeat itself."""

    @property
    def dialect(self) -> str:
        return self.ask.dialect

    @property
    def chat_key(self) -> str:
        """The key that chat calls must bring."""
        return self.ask.chat_key or self.ask.callback_key

    @property
    def accepted(self) -> bool:
        return 200 <= self.status < 300

    @property
    def owed(self) -> bool:
        """A callback came that was not acknowledged, and whose sender has every reason to send it again."""
        if self.cancelled is not None:
            return False
        return any(each.first is not None and each.acknowledged is None and not each.closed
                   for each in self.channels.values())  # fmt: skip

    def next_fault(self, what: str) -> str | None:
        planned = self.script.get(what)
        return planned.pop(0) if planned else None

    def conclude(self, now: float) -> None:
        """Take note of a verdict if what was said so far is one."""
        completion, grader = self.channels[COMPLETION].first, self.channels[GRADER].first
        found = completion if self.dialect == AGENT_LOOP or not self.ask.graded else grader
        if found is None and self.dialect == MULTI_SAMPLE and completion is not None and completion.status != "success":
            found = completion  # this generation's controller ends the row here (its later grade is stale)
        if found is not None and self.verdict is None:
            self.verdict, self.verdict_at = found, now
            self.over.set()

    def outcome(self) -> str:
        """One word for the report."""
        if self.verdict is not None:
            if self.verdict.status == "success":
                return "scored" if self.verdict.reward is not None else "no reward"
            return self.verdict.status
        if self.cancelled is not None:
            return "cancelled"
        if self.status and not self.accepted:
            return "refused"
        return "no verdict"
