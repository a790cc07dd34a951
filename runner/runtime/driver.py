"""What the engine does for a workflow: model calls and tool calls, budgeted, recorded, attributed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from runner.build.live import Live
from runner.records.completion import Caller, Completion, Sampling, ToolSpec
from runner.records.event import (
    Listener,
    Logged,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ToolEnded,
    ToolsAnswered,
    ToolStarted,
)
from runner.records.failure import ContextOverflow, RolloutError, WorkflowError
from runner.records.message import Message, ToolCall
from runner.runtime.boundary import Attributed, boundary, failure_of
from runner.runtime.budget import Budget
from runner.tools.tool import ToolResult, ToolScope

_SAMPLING_KEYS = frozenset(field.name for field in fields(Sampling))


class RolloutDriver:
    """The `Driver` of one rollout. The endpoint sees what the workflow passed, and nothing it did not."""

    def __init__(
        self, live: Live, caller: Caller, sampling: Sampling, budget: Budget, scope: ToolScope, tell: Listener
    ) -> None:
        self._live = live
        self._caller = caller
        self._sampling = sampling
        self._budget = budget
        self._scope = scope
        self._tell = tell

    @property
    def tools(self) -> Sequence[ToolSpec]:
        return self._live.plan.offered

    async def chat(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] | None, sampling: Mapping[str, Any]
    ) -> Completion:
        budget, tell = self._budget, self._tell
        turn = budget.begin_turn()
        offered = self.tools if tools is None else tools
        how = merge_sampling(self._sampling, sampling) if sampling else self._sampling
        tell(ModelCalled(self._caller.rollout_id, budget.clock(), turn, tuple(messages)))
        try:
            with boundary("model", "model_crashed"):
                completion = await self._live.model.complete(messages, offered, how, self._caller)
        except (RolloutError, Attributed) as error:
            tell(ModelFailed(self._caller.rollout_id, budget.clock(), turn, failure_of(error, "model", "model_error")))
            if isinstance(error, ContextOverflow):
                raise budget.trip("context_overflow", str(error)) from error
            raise
        budget.spend(completion)
        tell(ModelAnswered(self._caller.rollout_id, budget.clock(), turn, completion))
        return completion

    async def call_tools(self, calls: Sequence[ToolCall]) -> list[Message]:
        budget = self._budget
        budget.begin_tools(len(calls))
        with boundary("tool", "tool_crashed"):
            answered = await self._live.plan.toolbox.run(
                calls, self._scope, self._tool_started, self._tool_ended, turn=budget.turns
            )
        messages = [answer.message for answer in answered]
        self._tell(ToolsAnswered(self._caller.rollout_id, budget.clock(), budget.turns, tuple(messages)))
        budget.count_malformed(sum(answer.result.status == "bad_call" for answer in answered))
        return messages

    def log_event(self, name: str, data: Mapping[str, Any]) -> None:
        self._tell(Logged(self._caller.rollout_id, self._budget.clock(), name, data))

    def _tool_started(self, call: ToolCall) -> None:
        self._tell(ToolStarted(self._caller.rollout_id, self._budget.clock(), self._budget.turns, call))

    def _tool_ended(self, call: ToolCall, result: ToolResult, seconds: float) -> None:
        self._tell(
            ToolEnded(
                self._caller.rollout_id,
                self._budget.clock(),
                self._budget.turns,
                call,
                result.status,
                seconds,
                truncated=result.truncated,
                message="" if result.status == "ok" else result.content[:500],
            )
        )


def merge_sampling(base: Sampling, values: Mapping[str, Any]) -> Sampling:
    """`base` with the given keys in place; keys that are not of `[sampling]` go to `extra`, untouched.

    Raises `WorkflowError` for a value of the wrong kind.
    """
    known = {key: value for key, value in values.items() if key in _SAMPLING_KEYS}
    extra = {key: value for key, value in values.items() if key not in _SAMPLING_KEYS}
    if "extra" in known:
        if not isinstance(known["extra"], Mapping):
            raise WorkflowError("sampling `extra` must be a table", kind="bad_sampling")
        extra = {**known.pop("extra"), **extra}
    stop = known.get("stop")
    if stop is not None:
        known["stop"] = (stop,) if isinstance(stop, str) else tuple(stop)
    return replace(base, **known, extra={**base.extra, **extra} if extra else base.extra)
