"""`Steps`: makes the steps of a trajectory of what happened, told in its order.

A message of the model is one step: an action where it calls a tool (one for each call), the final answer if it is
that, else a thought. Which of them is known only by what comes next, so the last message waits for that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from runner.agentic.trajectory import MESSAGE, SAME_MESSAGE, StepType, Trajectory, TrajectoryStep
from runner.records.message import Message, ToolCall, text_of


class Steps:
    """Adds to `trajectory`. Tell it everything once; `end` when there is no more."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._trajectory = trajectory
        self._pending: tuple[Message, Mapping[str, Any]] | None = None
        self._reward: float | None = None

    def rewarded(self, reward: float) -> None:
        """The last message of the model is worth so much."""
        self._reward = reward

    def observed(self, message: Message) -> None:
        """A message that the model was sent and that answers no call."""
        self._settle()
        if message.get("role") == "system" and not self._trajectory.steps and not self._trajectory.system_prompt:
            self._trajectory.system_prompt = text_of(message)
            return
        self._trajectory.add_step(TrajectoryStep(StepType.OBSERVATION, text_of(message), _own(message, "user")))

    def said(self, message: Message, call: Mapping[str, Any] | None = None) -> None:
        """A message of the model, and the record of the call that it answers."""
        self._settle()
        self._pending = (message, call or {})

    def called(self, calls: Sequence[ToolCall]) -> None:
        """The tool calls that the last message makes."""
        message, record = self._pending or ({}, {})
        first = self._pending is not None
        self._pending = None
        for call in calls:
            facts: dict[str, Any] = _of_model(message, record) if first else {SAME_MESSAGE: True}
            facts |= {"tool_call_id": call.id} if call.id else {}
            args = _object(call.arguments)
            if args is None:
                facts["arguments"] = call.arguments  # what cannot be read is kept as it was written
            step = TrajectoryStep(StepType.ACTION, text_of(message) if first else "", facts, call.name or None, args)
            self._trajectory.add_step(_with_tokens(step, record) if first else step)
            first = False

    def answered(
        self,
        calls: Sequence[ToolCall],
        contents: Sequence[str],
        statuses: Sequence[str],
        told: Sequence[Message],
        rewards: Sequence[float | None] | None = None,
    ) -> None:
        """What came of calls, in their order; `told` are the messages that brought it, one for each call or for all."""
        each_has_one = len(told) == len(calls)
        for place, (call, content) in enumerate(zip(calls, contents, strict=True)):
            facts: dict[str, Any] = {"tool_call_id": call.id} if call.id else {}
            if place < len(statuses) and statuses[place]:
                facts["status"] = statuses[place]
            if each_has_one or place == 0:
                facts |= _own(told[place], "user", content) if place < len(told) else {}
            else:
                facts[SAME_MESSAGE] = True
            step = TrajectoryStep(StepType.ACTION_RESULT, content, facts, call.name or None)
            step.tool_result = value_of(content)
            step.reward_score = None if rewards is None else rewards[place]
            self._trajectory.add_step(step)

    def end(self, answer: str | None, *, finished: bool, marked: bool = False) -> None:
        """No more comes. `answer` is that of one that `finished`; `marked`: its last message holds more than that."""
        pending, self._pending = self._pending, None
        if pending is not None:
            message, record = pending
            text = text_of(message)
            kind = StepType.FINAL_ANSWER if finished else StepType.THOUGHT
            content = answer if finished and marked and answer is not None else text
            self._model_step(kind, content, message, record)
        elif finished and answer:
            # What a finish tool was given: no message of its own.
            self._trajectory.add_step(TrajectoryStep(StepType.FINAL_ANSWER, answer, {SAME_MESSAGE: True}))

    def _settle(self) -> None:
        pending, self._pending = self._pending, None
        if pending is not None:
            message, record = pending
            self._model_step(StepType.THOUGHT, text_of(message), message, record)

    def _model_step(self, kind: StepType, content: str, message: Message, record: Mapping[str, Any]) -> None:
        step = TrajectoryStep(kind, content, _of_model(message, record, content))
        step.reward_score, self._reward = self._reward, None
        self._trajectory.add_step(_with_tokens(step, record))


def _own(message: Message, role: str, content: str | None = None) -> dict[str, Any]:
    """The message, where a role and a text do not say all of it."""
    text = text_of(message) if content is None else content
    return {} if message == {"role": role, "content": text} else {MESSAGE: dict(message)}


_KEPT = ("turn", "finish_reason", "usage", "latency", "reasoning", "model", "id", "token_ids", "prompt_token_ids")


def _of_model(message: Message, record: Mapping[str, Any], content: str | None = None) -> dict[str, Any]:
    kept = {key: record[key] for key in _KEPT if record.get(key) is not None}
    return {**kept, **_own(message, "assistant", content)}


def _with_tokens(step: TrajectoryStep, record: Mapping[str, Any]) -> TrajectoryStep:
    step.log_probs = log_probs_of(record.get("logprobs"))
    tokens = record.get("token_ids") or step.log_probs
    step.attention_mask = [1] * len(tokens) if tokens else None
    return step


def log_probs_of(logprobs: Any) -> list[float] | None:
    """The log-probability of each token that was sampled, in any of the forms that endpoints use; None without."""
    if isinstance(logprobs, Mapping):
        inner = logprobs.get("content") or logprobs.get("token_logprobs")
        return log_probs_of(inner) if isinstance(inner, list) else None
    if not isinstance(logprobs, list) or not logprobs:
        return None
    values: list[Any] = [each.get("logprob") if isinstance(each, Mapping) else each for each in logprobs]
    if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return None
    return [float(value) for value in values]


def _object(arguments: str) -> dict[str, Any] | None:
    try:
        value = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def value_of(content: str) -> Any:
    """What a tool returned: an object, a list or a number where its text is one, else the text."""
    if content[:1] not in "{[-0123456789tfn" or not content:
        return content
    try:
        return json.loads(content, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return content


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")
