"""`Ended`: how an agent stopped and what it left, read from whatever its workflow returned."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.records.failure import Failure, WorkflowError
from runner.records.message import Message
from runner.records.rollout import AGENT_ANSWER, AGENT_REWARD
from runner.workflows.workflow import AgentWorkflowOutput


@dataclass(frozen=True, slots=True)
class Ended:
    """How the agent stopped, and what it left. `failure`: it gave up."""

    stop_reason: str
    messages: list[Message] | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)
    failure: Failure | None = None


def read_output(output: Any) -> Ended:
    """What the workflow returned. Raises `WorkflowError` for anything that is not one of the three forms."""
    if output is None:
        return Ended("final_answer")
    if isinstance(output, AgentWorkflowOutput):
        return _read_fields(output)
    if isinstance(output, list):
        return Ended("final_answer", _checked(output))
    raise WorkflowError(
        f"`run` returned {type(output).__name__}: return AgentWorkflowOutput, a list of messages, or None",
        kind="bad_return",
    )


def _read_fields(output: AgentWorkflowOutput) -> Ended:
    # Checked again: all of it may have been changed in place since it was validated.
    for name, value in output.metrics.items():
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise WorkflowError(f"metric {name!r} must be a finite number, found {value!r}", kind="bad_return")
    for name, field_name in ((AGENT_REWARD, "reward"), (AGENT_ANSWER, "answer")):
        if name in output.info:
            raise WorkflowError(f"info {name!r} is the runner's own: return it as `{field_name}`", kind="bad_return")
    messages = None if output.messages is None else _checked(output.messages)
    if output.error is not None:
        failure = Failure("workflow", "agent_error", output.error)
        return Ended(failure.kind, messages, output.metrics, output.info, failure)
    info, reward = output.info, output.reward
    if output.answer is not None:
        info = {**info, AGENT_ANSWER: output.answer}
    if reward is not None:
        if not isinstance(reward, int | float) or not math.isfinite(reward):
            raise WorkflowError(f"the reward must be a finite number, found {reward!r:.60}", kind="bad_reward")
        info = {**info, AGENT_REWARD: float(reward)}
    return Ended(output.stop_reason or "final_answer", messages, output.metrics, info)


def _checked(messages: list[Any]) -> list[Message]:
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise WorkflowError(f"message {index} that `run` returned has no `role`", kind="bad_return")
    return messages
