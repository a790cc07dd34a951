"""What the engine does for a workflow: model calls and tool calls, budgeted, recorded, attributed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from runner.build.live import Live
from runner.models.address import header_value
from runner.models.model import is_addressed
from runner.records.completion import Caller, Completion, Sampling, ToolSpec
from runner.records.event import (
    Listener,
    Logged,
    ModelAnswered,
    ModelBypassed,
    ModelCalled,
    ModelFailed,
    ToolEnded,
    ToolsAnswered,
    ToolStarted,
)
from runner.records.failure import ContextOverflow, Failure, ModelError, RolloutError, WorkflowError
from runner.records.message import Message, ToolCall
from runner.runtime.boundary import Attributed, boundary, failure_of
from runner.runtime.budget import Budget
from runner.runtime.sampling import merge_sampling
from runner.tools.tool import ToolResult, ToolScope
from runner.tools.toolbox import Answer
from runner.workflows.answers import ToolAnswers
from runner.workflows.workflow import Endpoint, ToolStatus

_MODEL = boundary("model", "model_crashed")
_TOOL = boundary("tool", "tool_crashed")


class RolloutDriver:
    """The `Driver` of one rollout. The endpoint sees what the workflow passed, and nothing it did not."""

    __slots__ = (
        "_answered",
        "_asked",
        "_budget",
        "_caller",
        "_closed",
        "_live",
        "_sampling",
        "_scope",
        "_tell",
        "broken",
    )

    def __init__(
        self, live: Live, caller: Caller, sampling: Sampling, budget: Budget, scope: ToolScope, tell: Listener
    ) -> None:
        self._live = live
        self._caller = caller
        self._sampling = sampling
        self._budget = budget
        self._scope = scope
        self._tell = tell
        self._answered = 0
        self._asked = False
        self._closed = False
        self.broken: Failure | None = None
        """A failure that a workflow may have swallowed and that nothing has mended: it decides the outcome."""

    @property
    def tools(self) -> Sequence[ToolSpec]:
        return self._live.plan.toolbox.specs

    @property
    def sampling(self) -> Sampling:
        """How the rollout samples where a call says nothing."""
        return self._sampling

    async def complete(
        self, messages: Sequence[Message], offered: Sequence[ToolSpec], sampling: Sampling
    ) -> Completion:
        """The model's answer itself. Whoever walks through a rollout stands here, and in `run_tools`."""
        return await self._live.model.complete(messages, offered, sampling, self._caller)

    async def run_tools(self, calls: Sequence[ToolCall]) -> list[Answer]:
        """The tool calls themselves."""
        toolbox, turn = self._live.plan.toolbox, self._budget.turns
        return await toolbox.run(calls, self._scope, self._tool_started, self._tool_ended, turn=turn)

    @property
    def endpoint(self) -> Endpoint | None:
        model = self._live.model
        if not is_addressed(model):
            return None
        extra, stream = getattr(model, "extra", {}), getattr(model, "stream", None)
        return Endpoint(model.url, model.api_key, model.headers, extra, stream)

    def bypassed(self, seconds: float) -> None:
        if not self._closed:
            self._tell(ModelBypassed(self._caller.rollout_id, self._budget.clock(), seconds))

    def close(self) -> None:
        """The rollout has ended: whatever of the workflow still runs may do nothing more in its name."""
        self._closed = True

    async def chat(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec] | None,
        sampling: Mapping[str, Any],
        sample_id: str = "",
    ) -> Completion:
        budget, tell, rollout_id = self._budget, self._tell, self._caller.rollout_id
        if self._is_over():
            await self._refuse()
        turn = budget.begin_turn()
        if sample_id and not self._asked:
            # A controller knows the sample by one name, which its header must be able to carry.
            self._caller = replace(self._caller, sample_id=header_value(sample_id))
        self._asked = True
        offered = self.tools if tools is None else tools
        how = merge_sampling(self._sampling, sampling) if sampling else self._sampling
        began = budget.clock()
        tell(ModelCalled(rollout_id, began, turn, tuple(messages), self._caller.sample_id))
        before = self._answered
        try:
            with _MODEL:
                completion = await self.complete(messages, offered, how)
        except (RolloutError, Attributed) as error:
            self._model_failed(error, (turn, began), before)
            raise
        if self._closed:
            await self._refuse()
        self._answered += 1
        self._mended()
        budget.spend(completion)
        tell(ModelAnswered(rollout_id, budget.clock(), turn, completion))
        return completion

    def _model_failed(self, error: RolloutError | Attributed, call: tuple[int, float], before: int) -> None:
        failure = failure_of(error, "model", "model_error")
        if self._closed:
            return
        (turn, began), now = call, self._budget.clock()
        retries = error.retries if isinstance(error, ModelError) else 0
        self._tell(ModelFailed(self._caller.rollout_id, now, turn, failure, now - began, retries))
        if isinstance(error, ContextOverflow):
            # A shorter conversation may still be answered, and then nothing was reached.
            raise self._budget.trip("context_overflow", str(error)) from error
        # Another call that began no earlier and was answered stands in for this one: best of n, a retry.
        if self.broken is None and self._answered == before:
            self.broken = failure

    def _mended(self) -> None:
        self._budget.mend()
        if self.broken is not None and self.broken.boundary == "model":
            self.broken = None

    async def call_tools(
        self, calls: Sequence[ToolCall], tell: Callable[[ToolAnswers], Sequence[Message]] | None = None
    ) -> ToolAnswers:
        budget = self._budget
        if self._is_over():
            await self._refuse()
        budget.begin_tools(len(calls))
        turn = budget.turns
        try:
            with _TOOL:
                answered = await self.run_tools(calls)
        except (RolloutError, Attributed) as error:
            self.broken = failure_of(error, "tool", "tool_crashed")
            raise
        if self._closed:
            await self._refuse()
        answers = ToolAnswers([answer.message for answer in answered], [answer.result.status for answer in answered])
        told = answers if tell is None else tell(answers)
        self._tell(ToolsAnswered(self._caller.rollout_id, budget.clock(), turn, tuple(told)))
        budget.count_malformed(answers.statuses.count("bad_call"))
        return answers

    def misread(self) -> None:
        if not self._closed:
            self._budget.count_malformed(1)

    def log_event(self, name: str, data: Mapping[str, Any]) -> None:
        if not self._closed:
            self._tell(Logged(self._caller.rollout_id, self._budget.clock(), name, data))

    def reached(self, kind: str, message: str) -> None:
        if not self._closed:
            self._budget.trip(kind, message)

    def lost(self, error: RolloutError) -> None:
        """A sandbox of the rollout is gone or cannot be had: whoever swallows that, the rollout has failed."""
        if not self._closed:
            self.broken = failure_of(error)

    @property
    def tool_time(self) -> float | None:
        """Seconds that one tool call may take: of tools that are not the file's own."""
        return self._budget.limits.tool_time

    def tool_began(self, call: ToolCall) -> None:
        if self._is_over():
            raise self._over()
        self._budget.begin_tools(1)
        self._tool_started(call)

    def tool_ended(self, call: ToolCall, status: ToolStatus, content: str, seconds: float) -> None:
        self._tool_ended(call, ToolResult(content, status), seconds)
        if not self._closed:
            self._budget.count_malformed(int(status == "bad_call"))

    def _is_over(self) -> bool:
        return self._closed or self._budget.spent or self._budget.expired()

    async def _refuse(self) -> NoReturn:
        # A workflow that asks again and again whatever it is told must not hold the event loop.
        await asyncio.sleep(0)
        raise self._over()

    def _over(self) -> RolloutError:
        if self._closed:
            return WorkflowError("the rollout has ended, nothing more can be asked in its name", kind="ended")
        tripped = self._budget.tripped if self._budget.spent else None
        return tripped or self._budget.timed_out()

    def _tool_started(self, call: ToolCall) -> None:
        if not self._closed:
            self._tell(ToolStarted(self._caller.rollout_id, self._budget.clock(), self._budget.turns, call))

    def _tool_ended(self, call: ToolCall, result: ToolResult, seconds: float) -> None:
        if self._closed:
            return
        self._tell(
            ToolEnded(
                self._caller.rollout_id,
                self._budget.clock(),
                self._budget.turns,
                call,
                result.status,
                seconds,
                result.truncated,
                "" if result.status == "ok" else result.content[:500],
                result.where,
                result.detail,
            )
        )
