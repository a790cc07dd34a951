"""`run_rollout`: a plan and a request become an outcome. Open, act, grade, close.

A failure in one rollout is data, not a crash: it is attributed at one boundary and recorded once, here.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from runner.build.live import Live
from runner.records.completion import Caller
from runner.records.event import AgentEnded, Event, Listener, RolloutEnded, RolloutStarted, ignore
from runner.records.failure import ControllerError, Failure, LimitReached, RolloutError, WorkflowError
from runner.records.limits import Limits
from runner.records.message import Message
from runner.records.rollout import Outcome, RolloutRequest, Status
from runner.runtime.alone import DeadlinePassed, SelfCancelled, alone
from runner.runtime.boundary import Attributed, boundary, failure_of
from runner.runtime.budget import Budget
from runner.runtime.driver import RolloutDriver
from runner.runtime.ended import Ended, read_output
from runner.runtime.grading import grade_within, settle_limit
from runner.runtime.recorder import Recorder
from runner.runtime.resources import open_resources
from runner.runtime.sampling import merge_sampling
from runner.runtime.sandboxes import hear_losses, open_scope
from runner.runtime.stepping import Stepping
from runner.runtime.stop import reason_to_stop
from runner.tools.processes import Processes
from runner.tools.tool import ToolScope
from runner.workflows.ambient import play
from runner.workflows.terms import Terms
from runner.workflows.workflow import AgentWorkflow, AgentWorkflowContext

_WORKFLOW = boundary("workflow", "agent_error")


async def run_rollout(
    live: Live,
    request: RolloutRequest,
    listen: Listener = ignore,
    *,
    started: float | None = None,
    graded: bool = True,
    left: Callable[[Outcome], None] | None = None,
    stepping: Stepping | None = None,
) -> Outcome:
    """Play one rollout to its outcome.

    `started` is when it was asked for, on the monotonic clock: what it waited since then counts against its time.
    Without `graded` no grader is asked, and an agent that ended leaves an "ungraded" outcome without a failure; `left`
    is told what it left, before graders are asked.
    `stepping` is somebody who walks through it, and the clock that stands still while they think.

    Never raises, except cancellation: a task cancelled by the pool (which gave a reason) ends as the outcome
    "cancelled"; any other cancellation is passed on.
    """
    return await _Rollout(live, request, listen, started, graded, left, stepping).play()


class _Rollout:
    __slots__ = (
        "_budget",
        "_caller",
        "_graded",
        "_left",
        "_limits",
        "_listen",
        "_live",
        "_misfit",
        "_queued",
        "_recorder",
        "_request",
        "_started",
        "_stepping",
        "_tell",
    )

    def __init__(
        self,
        live: Live,
        request: RolloutRequest,
        listen: Listener,
        started: float | None,
        graded: bool,
        left: Callable[[Outcome], None] | None,
        stepping: Stepping | None,
    ) -> None:
        self._live = live
        self._request = request
        self._listen = listen
        self._started = time.time()
        self._graded = graded
        self._left = left
        self._limits, self._misfit = _limits(live, request)
        self._stepping = stepping
        self._budget = Budget(self._limits, time.monotonic if stepping is None else stepping.clock, started)
        self._queued = 0.0 if started is None else self._budget.elapsed()
        self._recorder = Recorder(request.prompt)
        self._tell: Listener = self._recorder if listen is ignore else _Both(self._recorder, listen)
        self._caller = Caller(request.rollout_id, request.row, request.attempt)

    async def play(self) -> Outcome:
        if self._listen is not ignore:
            self._listen(RolloutStarted(self._id, self._budget.clock(), self._request.row_id, self._request.attempt))
        try:
            outcome = await self._open()
        except asyncio.CancelledError:
            outcome = self._cancelled()
        if self._listen is not ignore:
            how = outcome.status, outcome.stop_reason, outcome.reward
            self._listen(RolloutEnded(self._id, self._budget.clock(), *how))
        return outcome

    @property
    def _id(self) -> str:
        return self._request.rollout_id

    async def _open(self) -> Outcome:
        try:
            if self._misfit is not None:
                raise self._misfit
            if not self._live.plan.rollout_resources:
                return await self._act_and_grade(self._live.resources)
            async with open_resources(self._live, self._tell, self._id, self._budget.remaining()) as resources:
                return await self._act_and_grade(resources)
        except (RolloutError, Attributed) as error:
            return self._failed(failure_of(error))

    async def _act_and_grade(self, resources: Mapping[str, Any]) -> Outcome:
        ended = await self._act(resources)
        if ended.failure is not None:
            return self._outcome("failed", ended, ended.failure)
        left = self._outcome("ungraded", ended)
        if self._left is not None:
            self._left(left)
        if self._listen is not ignore:
            self._listen(AgentEnded(self._id, self._budget.clock(), left))
        if not self._graded:
            return left
        settled = settle_limit(self._live, left)
        return settled or await grade_within(self._live, left, resources, self._limits.grade_time, self._listen)

    async def _act(self, resources: Mapping[str, Any]) -> Ended:
        async with open_scope(self._live, self._caller, resources, self._tell) as scope:
            return await self._act_in(scope)

    async def _act_in(self, scope: ToolScope) -> Ended:
        sampling = merge_sampling(self._live.plan.sampling_for(self._request), self._request.sampling)
        parts = self._live, self._caller, sampling, self._budget, scope, self._tell
        driver = RolloutDriver(*parts) if self._stepping is None else self._stepping.driver(*parts)
        hear_losses(scope, driver.lost)
        processes = Processes()
        try:
            return await alone(processes.of(self._run_workflow(driver, scope)), self._budget.remaining())
        except asyncio.CancelledError:
            processes.end()
            raise
        except DeadlinePassed as passed:
            processes.end()
            raise self._budget.timed_out(passed.told) from None
        except SelfCancelled:
            raise WorkflowError(
                "the workflow cancelled its own task, nobody cancelled the rollout: to give up, raise or return"
            ) from None
        finally:
            driver.close()

    async def _run_workflow(self, driver: RolloutDriver, scope: ToolScope) -> Ended:
        """How the agent stopped. Whatever it swallowed on the way, a limit or a failure, still counts."""
        try:
            with _WORKFLOW:
                workflow = self._live.plan.make_workflow()
                output = await play(workflow, self._context(workflow, driver, scope))
        except (RolloutError, Attributed) as error:
            return self._stopped_by(error, driver.broken)
        ended = read_output(output)
        if driver.broken is not None:
            raise Attributed(driver.broken)
        tripped = self._budget.tripped
        return ended if tripped is None else Ended(tripped.kind, ended.messages, ended.metrics, ended.info)

    def _stopped_by(self, error: RolloutError | Attributed, broken: Failure | None) -> Ended:
        """A limit that fired is the reason, unless the infrastructure broke: then there was nothing to limit.

        A model that never answered is the cause of whatever the code made of that, a limit run into by asking it
        again and again included.
        """
        failure = failure_of(error)
        if failure.boundary != "workflow":
            raise error
        if broken is not None:
            raise Attributed(replace(broken, detail=broken.detail or failure.detail)) from error
        if self._budget.tripped is not None:
            return Ended(self._budget.tripped.kind)
        if isinstance(error, LimitReached):
            raise WorkflowError(f"LimitReached was raised by the code itself, no limit fired: {error}") from error
        raise error

    def _context(
        self, workflow: AgentWorkflow[Any], driver: RolloutDriver, scope: ToolScope
    ) -> AgentWorkflowContext[Any]:
        request = self._request
        label = request.label if getattr(workflow, "sees_label", False) else None
        return AgentWorkflowContext(
            prompt=[_own(message) for message in request.prompt],
            config=workflow.config,
            metadata=request.row,
            rollout_id=request.rollout_id,
            attempt=request.attempt,
            driver=driver,
            resources=scope.resources,
            terms=Terms(driver.sampling, self._limits, label),
            sandboxes=scope.sandboxes,
        )

    def _failed(self, failure: Failure) -> Outcome:
        return self._outcome("failed", Ended(failure.kind), failure)

    def _cancelled(self) -> Outcome:
        return self._outcome("cancelled", Ended(reason_to_stop()))

    def _outcome(self, status: Status, ended: Ended, failure: Failure | None = None) -> Outcome:
        recorder, budget = self._recorder, self._budget
        timing = {
            "started": round(self._started, 3),
            "total": round(budget.elapsed(), 6),
            "model": round(recorder.model_seconds, 6),
            "tool": round(recorder.tool_seconds, 6),
            "grade": 0.0,
        }
        if self._queued:
            timing["queued"] = round(self._queued, 6)
        return Outcome(
            self._request,
            status,
            ended.stop_reason,
            failure=failure,
            sample=recorder.sample(ended.messages, {"turns": budget.turns, **ended.metrics}, ended.info),
            usage=budget.usage,
            cost=budget.cost,
            timing=timing,
            ended=ended.stop_reason,
        )


class _Both:
    """Tells an event to the recorder and to whoever listens, if that looks at its kind (`hears`, if it says so).

    A method of the rollout, kept by the rollout, would be a cycle: all that it holds would wait for the garbage
    collector, which takes a twelfth of the processor of a busy server (`benchmarks/serve_rate.py`).
    """

    __slots__ = ("_hears", "_listen", "_recorder")

    def __init__(self, recorder: Recorder, listen: Listener) -> None:
        self._recorder = recorder
        self._listen = listen
        self._hears: Collection[type[Event]] | None = getattr(listen, "hears", None)

    def __call__(self, event: Event) -> None:
        self._recorder(event)
        if self._hears is None or type(event) in self._hears:
            self._listen(event)


def _limits(live: Live, request: RolloutRequest) -> tuple[Limits, ControllerError | None]:
    """The file's limits with the request's own in place; an error instead of limits that cannot be."""
    limits = live.plan.limits
    try:
        return limits.override(request.limits), None
    except (KeyError, ValueError) as error:
        return limits, ControllerError(f"the request's limits: {error.args[0]}", kind="bad_limits")


def _own(message: Message) -> Message:
    """A copy that the workflow may edit: attempts of one row share the prompt."""
    if all(isinstance(value, str) for value in message.values()):
        return dict(message)
    return deepcopy(message)
