"""A rollout: who asked for it, and how it ended.

`Outcome` is the one result type of the engine: eval journals it, serve reports it, export reads it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from runner.records.completion import Usage
from runner.records.failure import Failure
from runner.records.message import Message

SCHEMA = "rollout/1"
"""The version of a journal record; readers refuse a newer one."""

Status: TypeAlias = Literal["scored", "ungraded", "failed", "cancelled"]
STATUSES: tuple[Status, ...] = ("scored", "ungraded", "failed", "cancelled")

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RolloutRequest:
    """One rollout to play.

    `row` is the dataset row as templates see it; `row_index` its place in the dataset, `row_id` its name.
    `prompt` is the messages the rollout starts from, already rendered; `label` the reference answer or None.
    `sampling` and `limits` hold a controller's overrides, by key of `[sampling]` and `[limits]`.
    """

    rollout_id: str
    prompt: tuple[Message, ...]
    row: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    row_index: int = 0
    row_id: str = ""
    attempt: int = 0
    label: str | None = None
    sampling: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    limits: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)


@dataclass(frozen=True, slots=True)
class ScoreRecord:
    """What one grader said. `value` is None when it could not speak; then `failure` says why.

    `removed`: it said that the sample is not to be counted or trained on; then there may be no value and no failure.
    """

    value: float | None
    reason: str = ""
    failure: Failure | None = None
    details: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    seconds: float = 0.0
    removed: bool = False

    def to_json(self) -> dict[str, Any]:
        record: dict[str, Any] = {"value": self.value, "reason": self.reason}
        if self.removed:
            record["removed"] = True
        if self.failure is not None:
            record["failure"] = self.failure.to_json()
        if self.details:
            record["details"] = dict(self.details)
        if self.seconds:
            record["seconds"] = round(self.seconds, 6)
        return record


AGENT_REWARD = "agent_reward"
"""The key of `Sample.info` under which the agent's own reward is kept; only the engine writes it."""

AGENT_ANSWER = "agent_answer"
"""The same for the agent's answer, where its last message holds more than that."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a rollout yields for training: its messages, every model call, every tool call.

    `messages` is complete, with the system prompt. `calls` and `tool_spans` are JSON objects, in order of their ends.
    Spans of calls that were written as text are in the order of the calls, and hold their `arguments`.
    `info` is what the workflow wants kept beside its `metrics`.
    """

    messages: tuple[Message, ...] = ()
    calls: tuple[Mapping[str, Any], ...] = ()
    tool_spans: tuple[Mapping[str, Any], ...] = ()
    metrics: Mapping[str, float] = field(default_factory=lambda: _EMPTY)
    info: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)

    @property
    def agent_answer(self) -> str | None:
        """What the agent answers, where it said so; else it is the text of its last message."""
        given = self.info.get(AGENT_ANSWER)
        return given if isinstance(given, str) else None

    @property
    def sample_id(self) -> str:
        """What the agent's model calls said that the sample is called; empty where they said nothing."""
        return next((str(call["sample_id"]) for call in self.calls if call.get("sample_id")), "")

    @property
    def agent_reward(self) -> float | None:
        """The reward that the agent itself gave; the rollout's where there is no grader."""
        given = self.info.get(AGENT_REWARD)
        return float(given) if isinstance(given, int | float) and not isinstance(given, bool) else None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The terminal result of a rollout.

    `reward` is a finite number exactly when `status` is "scored". `failure` is set for "failed", and for "ungraded"
    unless `[limits] on_limit` asked for that.
    `ended` is how the agent itself stopped: the same as `stop_reason`, but for "ungraded", where `stop_reason` says why
    no grade was given. `timing` holds seconds: `started` (Unix time), `total`, `model`, `tool`, `grade`.
    """

    request: RolloutRequest
    status: Status
    stop_reason: str
    reward: float | None = None
    scores: Mapping[str, ScoreRecord] = field(default_factory=lambda: _EMPTY)
    failure: Failure | None = None
    sample: Sample = field(default_factory=Sample)
    usage: Usage = field(default_factory=Usage)
    cost: float | None = None
    timing: Mapping[str, float] = field(default_factory=lambda: _EMPTY)
    ended: str = ""
