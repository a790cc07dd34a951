"""An agent of the third seed as a workflow of the engine: for one prompt in Python, or under a file.

`HostedWorkflow` plays one rollout: by the engine's own workflow where the agent is one of ours, or else by the agent's
`run_trajectory`, whose trajectory then goes into the rollout's record.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runner.agentic.adapted import rewards
from runner.agentic.agent import BaseAgent, is_engines
from runner.agentic.context import MAX_STEPS, AgentContext
from runner.agentic.llm import EngineFunction
from runner.agentic.playing import Playing, entered
from runner.agentic.staging import own_tools, staged
from runner.agentic.steps import Steps
from runner.agentic.trajectory import Trajectory, TrajectoryStep
from runner.agentic.view import OWN
from runner.records.completion import ToolSpec
from runner.records.failure import WorkflowError
from runner.records.message import text_of
from runner.tools.tool import Tool
from runner.workflows.typed import WorkflowMisfit
from runner.workflows.workflow import AgentWorkflow, AgentWorkflowContext, AgentWorkflowOutput

if TYPE_CHECKING:
    from runner.build.plan import Plan


@dataclass
class Telling:
    """What a rollout in Python is told beyond its context: the prompt as it was given, and who hears of each step."""

    prompt: Any = None
    keywords: Mapping[str, Any] = field(default_factory=dict)
    steps: Steps | None = None
    hears: Callable[[TrajectoryStep], None] | None = None
    native: bool = True


class HostedWorkflow(AgentWorkflow[Any]):
    """One rollout of `agent`. `inner` is the engine's workflow that plays it; None: its own code does."""

    def __init__(self, agent: BaseAgent, inner: AgentWorkflow[Any] | None, telling: Telling | None = None) -> None:
        super().__init__(None if inner is None else inner.config)
        self._agent = agent
        self._inner = inner
        self._telling = telling or Telling()
        self.playing: Playing | None = None
        """What surrounded the agent's own code, once it has begun."""

    async def run(self, ctx: AgentWorkflowContext[Any]) -> AgentWorkflowOutput:
        agent, is_own = self._agent, self._inner is None
        around = AgentContext(
            ctx,
            temperature=agent.temperature,
            max_tokens=agent.max_tokens_per_step,
            max_steps=None if is_own else agent.max_steps,
            steps=self._telling.steps,
            takes_rewards=not is_own,
        )
        token = rewards.set([]) if rewards.get() is None else None
        try:
            return await (self._own(around) if self._inner is None else self._ours(around, self._inner))
        finally:
            if token is not None:
                rewards.reset(token)

    async def _ours(self, ctx: AgentContext, inner: AgentWorkflow[Any]) -> AgentWorkflowOutput:
        output: AgentWorkflowOutput = await inner.run(ctx)  # type: ignore[assignment]  # ours return nothing else
        return output if ctx.reward is None else output.model_copy(update={"reward": ctx.reward})

    async def _own(self, ctx: AgentContext) -> AgentWorkflowOutput:
        first = ctx.prompt[0] if ctx.prompt else {}
        system = text_of(first) if first.get("role") == "system" and self._telling.prompt is None else ""
        telling = self._telling
        self.playing = Playing(self._agent, ctx.rollout_id, ctx, system, hears=telling.hears, native=telling.native)
        prompt = _prompt(ctx) if self._telling.prompt is None else self._telling.prompt
        with entered(self.playing):
            given: Any = await self._agent.run_trajectory(
                prompt, EngineFunction(ctx), ctx.rollout_id, **dict(self._telling.keywords)
            )
        if not isinstance(given, Trajectory):
            name = type(self._agent).__name__
            raise WorkflowError(f"`{name}.run_trajectory` returned {type(given).__name__}: return the trajectory",
                                kind="bad_return")  # fmt: skip
        self.playing.own = given
        ended = given.is_completed
        steps = given.steps
        reason = "final_answer" if ended else MAX_STEPS if len(steps) >= self._agent.max_steps else "stopped"
        rewarded = any(step.reward_score is not None for step in steps)
        return AgentWorkflowOutput(
            stop_reason=reason,
            answer=given.get_final_response() if ended else "",
            reward=(given.get_total_reward() if given.final_reward is None else given.final_reward)
            if rewarded
            else None,
            metrics={"steps": len(steps)},
            info={OWN: given.to_dict()},
        )


def _prompt(ctx: AgentContext) -> dict[str, Any]:
    """The rollout's prompt as agents of the seed are given it: the row, its messages, and the text of the last one."""
    asked = [message for message in ctx.prompt if message.get("role") == "user"]
    messages = [message for message in ctx.prompt if message.get("role") != "system"]
    return {**ctx.row, "content": text_of(asked[-1]) if asked else "", "messages": deepcopy(messages)}


@dataclass(frozen=True)
class AgentMaker:
    """Calling it gives the workflow of one rollout under a file. `tools` are the agent's own, beside the file's."""

    make: Callable[[], BaseAgent]
    plan: Plan
    tools: Mapping[str, Tool]
    native: bool

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """What the model is offered over the wire: an agent whose calls are text tells it of its tools in words."""
        return self.plan.toolbox.with_tools(self.tools).specs if self.native else ()

    def offered_with(self, file_tools: Sequence[ToolSpec]) -> tuple[ToolSpec, ...]:
        """The same beside the tools of a file, in which those of the agent are by then."""
        return tuple(file_tools) if self.native else ()

    def __call__(self) -> HostedWorkflow:
        agent = self.make()
        return HostedWorkflow(agent, agent.workflow(self.plan, native=True) if is_played_by_engine(agent) else None)


def prepare_agent(target: Any, config: Mapping[str, Any]) -> AgentMaker:
    """What plays the agent that a file names: a class, of which each rollout gets its own, made with `config`; an
    instance; or an `AgenticRollout`. Raises `WorkflowMisfit`.
    """
    make = _maker(target, config)
    agent = make()
    try:
        plan = staged(agent, native=True)
        tools = {**plan.tools, **own_tools(agent)}
    except (TypeError, ValueError) as error:
        raise WorkflowMisfit(f"its tools cannot be had: {error}") from error
    if plan.sandboxes:
        raise WorkflowMisfit("it needs a sandbox of its own; under a file, sandboxes and their tools are the file's")
    return AgentMaker(make, plan, tools, native=agent.calls_natively and is_played_by_engine(agent))


def is_played_by_engine(agent: BaseAgent) -> bool:
    """Whether an agent has no code of its own for it."""
    return is_engines(type(agent).run_trajectory)


def _maker(target: Any, config: Mapping[str, Any]) -> Callable[[], BaseAgent]:
    if inspect.isclass(target):
        return _of_class(target, config)
    if config:
        raise WorkflowMisfit("it is made already, so `config` cannot reach it; name its class")
    agent: BaseAgent = getattr(target, "agent", target)
    return lambda: agent


def _of_class(target: Any, config: Mapping[str, Any]) -> Callable[[], BaseAgent]:
    if not issubclass(target, BaseAgent):
        raise WorkflowMisfit("it is a class of rollouts; make one, and name that")
    if inspect.isabstract(target):
        missing = ", ".join(f"`{each}`" for each in sorted(target.__abstractmethods__))
        raise WorkflowMisfit(f"`{target.__name__}` is abstract: it does not define {missing}; define it")

    def make() -> BaseAgent:
        made: BaseAgent = target(**deepcopy(dict(config)))
        return made

    try:
        make()
    except Exception as error:
        said = f"{type(error).__name__}: {error}".replace("; ", ", ")
        raise WorkflowMisfit(
            f"`{target.__name__}` cannot be made of `config`: {said}; its keys are keywords"
        ) from error
    return make
