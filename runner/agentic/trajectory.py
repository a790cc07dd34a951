"""`Trajectory`: the steps of one rollout as the third seed has them: observation, thought, action, result, answer.

It holds what JSON holds, and `to_dict` loses nothing: `from_dict(to_dict(t)) == t`. Where a step is one of our record,
its `metadata` says which turn it is of, and under `message` what went over the wire where that is more than its text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any

SCHEMA = "trajectory/1"
"""The version of `to_dict` and of saved files; readers refuse a newer one."""

MESSAGE = "message"
"""The key of a step's metadata that holds its message, where that is more than a role and the step's text."""

SAME_MESSAGE = "same_message"
"""The key of a step's metadata that says: it is a part of the message that the step before it brought."""


class StepType(StrEnum):
    """What a step is."""

    OBSERVATION = "observation"
    THOUGHT = "thought"
    ACTION = "action"
    ACTION_RESULT = "action_result"
    FINAL_ANSWER = "final_answer"


_TOLD = (StepType.OBSERVATION, StepType.ACTION_RESULT)


@dataclass
class TrajectoryStep:
    """One step. `log_probs` and `attention_mask` are those of the tokens that the model wrote in it, in their order.

    An action has `tool_name` and `tool_args`; its result has `tool_name` and `tool_result`, a JSON value.
    """

    step_type: StepType
    content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    tool_name: str | None = None
    tool_args: dict[str, Any] | None = None
    tool_result: Any = None
    reward_score: float | None = None
    is_correct: bool | None = None
    log_probs: list[float] | None = None
    attention_mask: list[int] | None = None

    def __post_init__(self) -> None:
        self.step_type = StepType(self.step_type)

    def to_message(self) -> dict[str, Any]:
        """The chat message of this step: observations and results are the user's, the rest is the assistant's."""
        kept = self.metadata.get(MESSAGE)
        if isinstance(kept, dict):
            return dict(kept)
        return {"role": "user" if self.step_type in _TOLD else "assistant", "content": self.content}

    def to_dict(self) -> dict[str, Any]:
        """Every field, as JSON values."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**values, "step_type": self.step_type.value}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrajectoryStep:
        """What `to_dict` gave. Raises ValueError for what is no step."""
        _known(cls, values)
        return cls(**dict(values))


_begun: ContextVar[Callable[[Trajectory], None] | None] = ContextVar("trajectory_begun", default=None)
"""Told of each trajectory that is made: whoever plays an agent looks for the one that the agent makes."""


@dataclass
class Trajectory:
    """The steps of one rollout. `is_completed` is True only for one that came to its end by itself.

    `final_reward` is None where nobody gave one. `metadata` of one that the runner played says how it ended: `status`,
    `stop_reason`, `failure`, `usage`, `timing` and more.
    """

    request_id: str
    steps: list[TrajectoryStep] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    is_completed: bool = False
    final_reward: float | None = None
    total_tokens: int = 0
    system_prompt: str | None = None

    def __post_init__(self) -> None:
        self._hears: Callable[[TrajectoryStep], None] | None = None
        begun = _begun.get()
        if begun is not None and not self.steps:
            begun(self)

    def add_step(self, step: TrajectoryStep) -> None:
        """Add a step at the end."""
        self.steps.append(step)
        if self._hears is not None:
            self._hears(step)

    def get_messages(self, include_system_prompt: bool = False) -> list[dict[str, Any]]:
        """The conversation in OpenAI form, as it went over the wire where the runner played it."""
        told = [step.to_message() for step in self.steps if not step.metadata.get(SAME_MESSAGE)]
        if include_system_prompt and self.system_prompt:
            return [{"role": "system", "content": self.system_prompt}, *told]
        return told

    def get_tool_calls(self) -> list[TrajectoryStep]:
        """The actions."""
        return [step for step in self.steps if step.step_type is StepType.ACTION]

    def get_total_reward(self) -> float:
        """The rewards of all steps together."""
        return float(sum(step.reward_score for step in self.steps if step.reward_score is not None))

    def get_final_response(self) -> str:
        """The last final answer, or else the last text of the model; empty where it said nothing."""
        for wanted in ((StepType.FINAL_ANSWER,), (StepType.THOUGHT, StepType.ACTION)):
            for step in reversed(self.steps):
                if step.step_type in wanted:
                    return step.content
        return ""

    def statistics(self) -> dict[str, Any]:
        """Counts of steps and calls, rewards, tokens, seconds, and how it ended."""
        from runner.agentic.statistics import statistics_of

        return statistics_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON values."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {"schema": SCHEMA, **values, "steps": [step.to_dict() for step in self.steps]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Trajectory:
        """What `to_dict` gave. Raises ValueError for what is no trajectory, or one of a newer version."""
        rest = {key: value for key, value in values.items() if key not in ("schema", "steps")}
        check_version(values.get("schema", SCHEMA))
        _known(cls, rest)
        steps = values.get("steps", [])
        if not isinstance(steps, list):
            raise ValueError(f"the steps of a trajectory are a list, found {type(steps).__name__}")
        return cls(**rest, steps=[TrajectoryStep.from_dict(step) for step in steps])


def unannounced(request_id: str) -> Trajectory:
    """A trajectory of ours: nobody takes it for one that an agent makes."""
    token = _begun.set(None)
    try:
        return Trajectory(request_id)
    finally:
        _begun.reset(token)


def check_version(schema: Any) -> None:
    """Raises ValueError for a version that this one cannot read."""
    if schema != SCHEMA:
        raise ValueError(f"it is of the version {schema!r:.40}, and this osmosis-run reads {SCHEMA!r}")


def _known(kind: Any, values: Mapping[str, Any]) -> None:
    names = {each.name: each for each in fields(kind)}
    odd = [name for name in values if name not in names]
    missing = [name for name in ("request_id", "step_type", "content") if name in names and name not in values]
    if odd or missing:
        said = f"has no `{odd[0]}`" if odd else f"needs `{missing[0]}`"
        raise ValueError(f"a {kind.__name__} {said}")
