"""`LocalBackend`: an `AgentWorkflow` and a `Grader` of the second and third generation, played in this process.

Everything behind it is what `osmosis-run serve` runs: limits, records, one verdict for each rollout.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.build.importing import Importer, ReferenceProblem
from runner.build.live import GraderPart
from runner.graders.grader import GraderMisfit
from runner.graders.python import PythonGrader
from runner.records.rollout import Outcome
from runner.records.rollout_sample import MAIN, RolloutSample
from runner.sdk.execution import ExecutionBackend, ExecutionRequest, ExecutionResult, RolloutErrorCategory, Told
from runner.sdk.hosted_app import plan_of
from runner.strands.adapted import adapt_agent, agent_maker
from runner.workflows.ambient import RolloutContext, get_rollout_context
from runner.workflows.configs import ConcurrencyConfig, places
from runner.workflows.custom import prepare_made
from runner.workflows.loop.result import RolloutStatus
from runner.workflows.typed import WorkflowMisfit

if TYPE_CHECKING:
    from runner.build.live import Live
    from runner.build.plan import Plan
    from runner.models.model import Model

GRADER = "grader"
_LIMITS = {"limits.turns": 1000, "limits.time": "24h", "limits.grader_time": "24h"}
"""Those generations have no limits but what a request names; a loop that never ends still has to."""


class LocalBackend(ExecutionBackend):
    """Plays rollouts of `workflow`, a class or `"module:Class"`; `grader` scores them.

    Each rollout has its own instance of the workflow and its own copy of `workflow_config`. `concurrency` says how
    many play at once, or else the workflow's config does. Raises TypeError with all that is wrong.
    """

    def __init__(
        self,
        *,
        workflow: Any,
        workflow_config: Any = None,
        grader: Any = None,
        grader_config: Any = None,
        concurrency: ConcurrencyConfig | int | None = None,
    ) -> None:
        wrong: list[str] = []
        self._workflow, self._config = _resolved(workflow, wrong), _resolved(workflow_config, wrong)
        grading, grader_config = _resolved(grader, wrong), _resolved(grader_config, wrong)
        most = concurrency if isinstance(concurrency, int) else getattr(concurrency, "max_concurrent", None)
        self._most = most or places(self._config)
        self._grader: PythonGrader | None = None
        if not wrong:
            self._make(grading, grader_config, wrong)
        if wrong:
            raise TypeError("; ".join(wrong))
        self._open: _Open | None = None

    def _make(self, grader: Any, config: Any, wrong: list[str]) -> None:
        try:
            self._maker = prepare_made(agent_maker(self._workflow), self._config, adapt_agent)
        except WorkflowMisfit as misfit:
            wrong.append(misfit.message)
        if grader is None:
            if config is not None:
                wrong.append("there is a grader_config, and no grader to hand it to")
            return
        try:
            self._grader = PythonGrader(grader, made=config)
        except GraderMisfit as misfit:
            wrong.append(str(misfit))

    @property
    def name(self) -> str:
        """What the workflow is called: by its config, or else by its class."""
        own = getattr(self._config, "name", None)
        return (
            own.strip() if isinstance(own, str) and own.strip() else str(getattr(self._workflow, "__name__", "agent"))
        )

    @property
    def max_concurrency(self) -> int:
        """How many rollouts play at once; 0 is no limit of its own."""
        return self._most or 0

    def health(self) -> Mapping[str, Any]:
        return {"status": "ok", "concurrency": {"max_concurrent": self._most}}

    def plan(self, folder: Path, environ: Mapping[str, str] | None = None) -> Plan:
        """What a server plays, its state in `folder`. Raises `ConfigError` for variables that make no sense."""
        settings = {"workflow.name": self.name, **_LIMITS}
        if self._most is not None:
            settings["serve.max_concurrent"] = self._most
        plan = plan_of(settings, folder, "LocalBackend", environ)
        graders = () if self._grader is None else (GraderPart(GRADER, self._grader),)
        return replace(
            plan, make_workflow=self._maker, graders=graders, required=frozenset(part.name for part in graders)
        )

    async def execute(
        self, request: ExecutionRequest, on_workflow_complete: Told, on_grader_complete: Told | None = None
    ) -> ExecutionResult:
        """Play one rollout here and now, against the endpoint of the ambient context, of the request, or of the
        environment. Its grader is asked once the first callback has returned. Raises RuntimeError without an endpoint.
        """
        if self._open is None:
            self._open = _Open(self)
        return await self._open.execute(request, on_workflow_complete, on_grader_complete)


class _Open:
    """A backend that plays by itself, without a server."""

    def __init__(self, backend: LocalBackend) -> None:
        with tempfile.TemporaryDirectory(prefix="osmosis-run-") as folder:  # only a server keeps a state there
            self._plan = backend.plan(Path(folder))
        self._slots = asyncio.Semaphore(backend.max_concurrency) if backend.max_concurrency else None

    async def execute(
        self, request: ExecutionRequest, on_workflow_complete: Told, on_grader_complete: Told | None
    ) -> ExecutionResult:
        if self._slots is None:
            return await self._execute(request, on_workflow_complete, on_grader_complete)
        async with self._slots:
            return await self._execute(request, on_workflow_complete, on_grader_complete)

    async def _execute(
        self, request: ExecutionRequest, on_workflow_complete: Told, on_grader_complete: Told | None
    ) -> ExecutionResult:
        from runner.runtime.grading import grade_outcome
        from runner.runtime.rollout import run_rollout

        limits = {"time": request.agent_timeout_sec, "grader_time": request.grader_timeout_sec}
        asked = self._plan.served_request(
            request.id,
            request.prompt,
            request.metadata or {},
            request.label,
            limits={key: value for key, value in limits.items() if value is not None},
        )
        async with self._plan.open(model=_model(request)) as live:
            ended = await run_rollout(live, asked, graded=False)
            result = _result(ended, graded=False)
            await on_workflow_complete(result)
            if on_grader_complete is None:
                return result
            graded = await self._graded(live, ended, grade_outcome)
            await on_grader_complete(graded)
            return graded

    async def _graded(self, live: Live, ended: Outcome, grade: Any) -> ExecutionResult:
        if ended.status != "ungraded":
            return ExecutionResult(status=RolloutStatus.FAILURE)
        return _result(await grade(live, ended), graded=True)


def _resolved(value: Any, wrong: list[str]) -> Any:
    """The object that `"module:name"` names; any other value as it is."""
    if not isinstance(value, str):
        return value
    try:
        return Importer().find(value, Path.cwd()).value
    except ReferenceProblem as problem:
        wrong.append(problem.message)
        return None


def _model(request: ExecutionRequest) -> Model:
    from runner.models.chat import ChatModel

    context = get_rollout_context() or RolloutContext()
    base = context.chat_completions_url or request.chat_completions_url
    if not base:
        raise RuntimeError(
            "nobody says where completions come from: execute inside `with RolloutContext(chat_completions_url=...)`, "
            "or name the request's chat_completions_url"
        )
    return ChatModel(
        model="openai/osmosis-rollout",
        base_url=base,
        api_key=context.api_key or request.api_key,
        headers={"x-rollout-id": request.id, "x-sample-id": MAIN, **context.headers},
    )


def _result(outcome: Outcome, *, graded: bool) -> ExecutionResult:
    from runner.serve.dialects.category import category_of

    good = outcome.status in (("scored",) if graded else ("scored", "ungraded"))
    sample = RolloutSample(
        messages=[dict(message) for message in outcome.sample.messages],
        label=outcome.request.label,
        reward=outcome.reward,
        metrics=dict(outcome.sample.metrics),
        extra_fields=dict(outcome.sample.info),
    )
    failure = outcome.failure
    return ExecutionResult(
        status=RolloutStatus.SUCCESS if good else RolloutStatus.FAILURE,
        samples={sample.id: sample} if good or graded else {},
        err_message=None if failure is None or good else failure.message,
        err_category=None if failure is None or good else RolloutErrorCategory(category_of(failure)),
    )
