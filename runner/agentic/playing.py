"""What surrounds an agent's own code while it runs: the rollout's context, and so its model and its tools."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from runner.agentic.context import AgentContext
from runner.agentic.trajectory import StepType, Trajectory, TrajectoryStep, _begun
from runner.records.completion import Caller, ToolSpec
from runner.records.message import ToolCall, text_of

if TYPE_CHECKING:
    from runner.agentic.agent import BaseAgent
    from runner.workflows.parsers.parser import Parser, WrittenCall


@dataclass
class Playing:
    """The rollout that an agent's own code is in. `own` is the trajectory that it makes."""

    agent: BaseAgent
    request_id: str
    ctx: AgentContext
    system_prompt: str = ""
    own: Trajectory | None = None
    hears: Callable[[TrajectoryStep], None] | None = None
    native: bool = True
    """Whether the model can be offered tools over the wire."""

    def begun(self, trajectory: Trajectory) -> None:
        """The agent has made a trajectory: the first of this name is this rollout's."""
        if self.own is None and trajectory.request_id == self.request_id:
            self.own = trajectory
            trajectory._hears = self.hears


_playing: ContextVar[Playing | None] = ContextVar("agentic_playing", default=None)


def playing() -> Playing | None:
    """The rollout that the running code is in; None outside of one."""
    return _playing.get()


def is_playing(agent: BaseAgent, request_id: str) -> bool:
    """Whether the running code is in this agent's rollout of that name."""
    current = _playing.get()
    return current is not None and current.agent is agent and current.request_id == request_id


@contextmanager
def entered(current: Playing) -> Iterator[None]:
    """Inside the block, `playing()` is `current`."""
    token, begun = _playing.set(current), _begun.set(current.begun)
    try:
        yield
    finally:
        _playing.reset(token)
        _begun.reset(begun)


def specs_of(agent: BaseAgent) -> Sequence[ToolSpec]:
    """The tools that the agent may call: those of its rollout, or outside of one its own."""
    current = _playing.get()
    if current is not None and current.agent is agent:
        return current.ctx.tools
    from runner.agentic.staging import own_tools

    return [replace(tool.spec, name=name) for name, tool in own_tools(agent).items()]


def arguments_for(agent: BaseAgent, call: WrittenCall) -> dict[str, Any]:
    """The arguments of a written call, typed and named by the tool's schema where it has one."""
    from runner.workflows.parsers.typed import Unbound, arguments_of

    spec = next((spec for spec in specs_of(agent) if spec.name == call.name), None)
    try:
        return arguments_of(call, spec)
    except Unbound:
        return {**{f"arg_{place}": value for place, value in enumerate(call.positional)}, **call.arguments}


def misread() -> None:
    """Count an answer that could not be read. Raises `LimitReached` after too many."""
    current = _playing.get()
    if current is not None:
        current.ctx.driver.misread()


async def call_tool(agent: BaseAgent, name: str, arguments: dict[str, Any], parser: Parser) -> TrajectoryStep:
    """One call, through the rollout's driver, or outside of a rollout by the tool itself."""
    current = _playing.get()
    call = ToolCall(f"call_{uuid4().hex[:12]}", name, json.dumps(arguments, ensure_ascii=False), True)
    if current is not None and current.agent is agent:
        told: list[str] = []

        def tell(answers: Sequence[Any]) -> list[dict[str, Any]]:
            told.append(parser.observation([(call, text_of(answers[0]))]))
            return [{"role": "user", "content": told[0]}]

        answers = await current.ctx.call_tools([call], tell=tell)
        return _result(call, arguments, text_of(answers[0]), answers.statuses[0], told[0])
    from runner.agentic.staging import own_tools
    from runner.tools.tool import ToolScope
    from runner.tools.toolbox import Toolbox

    scope = ToolScope(Caller("alone"))
    (answer,) = await Toolbox(own_tools(agent)).run([call], scope)
    for closer in reversed(scope.closers):
        await closer()
    content = answer.result.content
    return _result(call, arguments, content, answer.result.status, parser.observation([(call, content)]))


def _result(call: ToolCall, arguments: dict[str, Any], content: str, status: str, told: str) -> TrajectoryStep:
    from runner.agentic.context import reward_of
    from runner.agentic.steps import value_of

    step = TrajectoryStep(
        StepType.ACTION_RESULT, told, {"tool_call_id": call.id, "status": status}, call.name, arguments
    )
    step.tool_result = value_of(content)
    step.reward_score = reward_of(call)
    return step
