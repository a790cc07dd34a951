"""`run_rollout`: a plan and a request become an outcome. Open, act, grade, close.

A failure in one rollout is data, not a crash: it is attributed at one boundary and recorded once, here.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.build.live import Live
from runner.records.completion import Caller
from runner.records.event import Event, Listener, RolloutEnded, RolloutStarted, ignore
from runner.records.failure import Failure, LimitReached, RolloutError, WorkflowError
from runner.records.message import Message
from runner.records.rollout import Outcome, RolloutRequest, Status
from runner.runtime.boundary import Attributed, boundary, failure_of
from runner.runtime.budget import Budget
from runner.runtime.driver import RolloutDriver, merge_sampling
from runner.runtime.grading import grade, settle_limit
from runner.runtime.recorder import Recorder
from runner.runtime.resources import open_resources
from runner.runtime.stop import current_stop
from runner.tools.tool import ToolScope
from runner.workflows.workflow import AgentWorkflowContext, AgentWorkflowOutput


async def run_rollout(live: Live, request: RolloutRequest, listen: Listener = ignore) -> Outcome:
    """Play one rollout to its outcome.

    Never raises, except cancellation: a task cancelled by the pool (which gave a reason) ends as the outcome
    "cancelled"; any other cancellation is passed on.
    """
    return await _Rollout(live, request, listen).play()


@dataclass(frozen=True, slots=True)
class _Ended:
    """How the agent stopped, and what it left."""

    stop_reason: str
    messages: list[Message] | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


class _Rollout:
    __slots__ = ("_budget", "_caller", "_listen", "_live", "_recorder", "_request", "_started")

    def __init__(self, live: Live, request: RolloutRequest, listen: Listener) -> None:
        self._live = live
        self._request = request
        self._listen = listen
        self._started = time.time()
        self._budget = Budget(live.plan.limits.override(request.limits))
        self._recorder = Recorder(request.prompt)
        self._caller = Caller(request.rollout_id, request.row, request.attempt)

    async def play(self) -> Outcome:
        self._tell(RolloutStarted(self._id, self._budget.clock(), self._request.row_id, self._request.attempt))
        try:
            outcome = await self._open()
        except asyncio.CancelledError:
            outcome = self._cancelled()
        self._tell(RolloutEnded(self._id, self._budget.clock(), outcome.status, outcome.stop_reason, outcome.reward))
        return outcome

    @property
    def _id(self) -> str:
        return self._request.rollout_id

    def _tell(self, event: Event) -> None:
        self._recorder(event)
        self._listen(event)

    async def _open(self) -> Outcome:
        try:
            async with open_resources(self._live, self._tell, self._id) as resources:
                ended = await self._act(resources)
                return await self._grade(ended, resources)
        except (RolloutError, Attributed) as error:
            return self._failed(failure_of(error))

    async def _act(self, resources: Mapping[str, Any]) -> _Ended:
        deadline = asyncio.timeout(self._budget.remaining())
        try:
            async with deadline:
                ended = await self._run_workflow(resources)
        except TimeoutError as error:
            raise self._timed_out() from error
        if deadline.expired():
            # The workflow outran its deadline without yielding, or swallowed the cancellation: still a time-out.
            raise self._timed_out()
        return ended

    def _timed_out(self) -> WorkflowError:
        return WorkflowError(
            f"not finished within `[limits] time` of {self._budget.limits.time:g} s, in turn {self._budget.turns}",
            kind="rollout_timeout",
        )

    async def _run_workflow(self, resources: Mapping[str, Any]) -> _Ended:
        try:
            with boundary("workflow", "agent_error"):
                workflow = self._live.plan.make_workflow()
                output = await workflow.run(self._context(workflow.config, resources))
        except LimitReached as error:
            return _Ended(error.kind)
        except (RolloutError, Attributed):
            if self._budget.tripped is not None:
                return _Ended(self._budget.tripped.kind)
            raise
        ended = _read_output(output)
        if self._budget.tripped is not None:
            return _Ended(self._budget.tripped.kind, ended.messages, ended.metrics)
        return ended

    def _context(self, config: Any, resources: Mapping[str, Any]) -> AgentWorkflowContext[Any]:
        request = self._request
        sampling = merge_sampling(self._live.plan.sampling_for(request), request.sampling)
        scope = ToolScope(self._caller, resources)
        driver = RolloutDriver(self._live, self._caller, sampling, self._budget, scope, self._tell)
        return AgentWorkflowContext(
            prompt=[dict(message) for message in request.prompt],
            config=config,
            metadata=request.row,
            rollout_id=request.rollout_id,
            attempt=request.attempt,
            driver=driver,
            resources=resources,
        )

    async def _grade(self, ended: _Ended, resources: Mapping[str, Any]) -> Outcome:
        left = self._outcome("ungraded", ended.stop_reason, ended=ended)
        return settle_limit(self._live, left) or await grade(self._live, left, resources, self._tell)

    def _failed(self, failure: Failure) -> Outcome:
        return self._outcome("failed", failure.kind, failure=failure)

    def _cancelled(self) -> Outcome:
        stop, task = current_stop.get(), asyncio.current_task()
        if stop is None or stop.reason is None or task is None:
            raise asyncio.CancelledError
        task.uncancel()
        return self._outcome("cancelled", stop.reason)

    def _outcome(
        self, status: Status, stop_reason: str, *, failure: Failure | None = None, ended: _Ended | None = None
    ) -> Outcome:
        ended = ended or _Ended(stop_reason)
        recorder, budget = self._recorder, self._budget
        timing = {
            "started": round(self._started, 3),
            "total": round(budget.elapsed(), 6),
            "model": round(recorder.model_seconds, 6),
            "tool": round(recorder.tool_seconds, 6),
        }
        return Outcome(
            self._request,
            status,
            stop_reason,
            failure=failure,
            sample=recorder.sample(ended.messages, {"turns": budget.turns, **ended.metrics}),
            usage=budget.usage,
            cost=budget.cost,
            timing=timing,
            ended=ended.stop_reason,
        )


def _read_output(output: Any) -> _Ended:
    """What the workflow returned. Raises `WorkflowError` for anything that is not one of the three forms."""
    if output is None:
        return _Ended("final_answer")
    if isinstance(output, AgentWorkflowOutput):
        # Checked again: the dictionary may have been changed in place since it was validated.
        for name, value in output.metrics.items():
            if not isinstance(value, int | float) or not math.isfinite(value):
                raise WorkflowError(f"metric {name!r} must be a finite number, found {value!r}", kind="bad_return")
        messages = None if output.messages is None else _checked(output.messages)
        return _Ended(output.stop_reason or "final_answer", messages, output.metrics)
    if isinstance(output, list):
        return _Ended("final_answer", _checked(output))
    raise WorkflowError(
        f"`run` returned {type(output).__name__}: return AgentWorkflowOutput, a list of messages, or None",
        kind="bad_return",
    )


def _checked(messages: list[Any]) -> list[Message]:
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise WorkflowError(f"message {index} that `run` returned has no `role`", kind="bad_return")
    return messages
