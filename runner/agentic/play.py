"""A prompt played by an agent of the third seed: a rollout of the engine, and the trajectory that it leaves."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from runner.agentic.adapted import rewards
from runner.agentic.context import AgentContext
from runner.agentic.environment import save_folder, set_log_level
from runner.agentic.hosting import HostedWorkflow, Telling
from runner.agentic.llm import model_of, takes_tools
from runner.agentic.playing import Playing, playing
from runner.agentic.prompt import messages_of, row_of
from runner.agentic.saving import TrajectoryFile
from runner.agentic.staging import own_tools, staged
from runner.agentic.steps import Steps
from runner.agentic.trajectory import StepType, Trajectory, unannounced
from runner.agentic.view import answer_of, is_finished, settled
from runner.records.failure import Failure, RolloutError
from runner.records.message import text_of
from runner.records.rollout import AGENT_ANSWER, Outcome, RolloutRequest
from runner.store.record import to_record

if TYPE_CHECKING:
    from runner.agentic.agent import BaseAgent
    from runner.build.plan import Plan
    from runner.models.model import Model

_log = logging.getLogger("runner.agentic")
_noticed: set[str] = set()
"""Notices that this process has given: each is said once."""


async def play_prompt(
    agent: BaseAgent,
    prompt: Any,
    function: Callable[..., Any] | None,
    request_id: str,
    keywords: Mapping[str, Any],
    *,
    by_engine: bool = False,
) -> Trajectory:
    """The trajectory of one prompt, by the agent's own code or by the engine's workflow.

    Raises ValueError and TypeError for a prompt, a function, tools or settings that cannot be; what goes wrong while it
    plays is in the trajectory.
    """
    set_log_level()
    request_id = request_id or f"trajectory-{uuid4().hex[:12]}"
    native = takes_tools(function)
    plan = staged(agent, native=native)
    plan = plan.with_tools(own_tools(agent))
    inner = agent.workflow(plan, native=native) if by_engine else None
    system = agent.create_system_prompt() if inner is not None else ""
    request = RolloutRequest(request_id, tuple(messages_of(prompt, system)), row_of(prompt), row_id=request_id)
    model = model_of(function)
    view = unannounced(request_id)
    facts = _facts(agent, playing())
    with ExitStack() as stack:
        file = _file(agent, request_id, facts, stack)
        hears = None if file is None else file.add
        telling = Telling(prompt, keywords, Steps(view), hears, native)
        hosted = HostedWorkflow(agent, inner, telling)
        view._hears = hears if inner is not None else None
        left: list[tuple[str, Any, float]] = []
        stack.callback(rewards.reset, rewards.set(left))
        outcome = await _outcome(replace(plan, make_workflow=lambda: hosted), request, model, facts)
        trajectory = _ended(hosted.playing, telling, view, outcome)
        trajectory.metadata |= facts
        _reward_lives(trajectory, left)
        if file is not None:
            file.end(trajectory)
    _say(trajectory)
    return trajectory


async def play_within(current: Playing, prompt: Any) -> Trajectory:
    """The trajectory that the engine's workflow of an agent makes inside of the rollout of the agent's own code."""
    agent = current.agent
    view = current.own = unannounced(current.request_id)
    view._hears = current.hears
    steps = Steps(view)
    ctx = AgentContext(current.ctx, max_steps=agent.max_steps, steps=steps)
    ctx.prompt = messages_of(prompt, agent.create_system_prompt() or current.system_prompt)
    inner = agent.workflow(staged(agent, native=current.native), native=current.native)
    output: Any = await inner.run(ctx)
    finished = output.stop_reason in ("final_answer", "finish_tool")
    last = (output.messages or [{}])[-1]
    answer = text_of(last) if output.answer is None else output.answer
    steps.end(answer, finished=finished, marked=output.answer is not None)
    view.is_completed, view.final_reward = finished, ctx.reward
    return view


def _facts(agent: BaseAgent, around: Playing | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"agent": type(agent).__name__}
    if around is not None:
        facts["parent"] = around.request_id  # an agent that another one asked
    return facts


def _file(agent: BaseAgent, request_id: str, facts: Mapping[str, Any], stack: ExitStack) -> TrajectoryFile | None:
    folder = save_folder(agent.save_trajectories, agent.trajectory_save_path)
    if folder is None:
        return None
    file = TrajectoryFile(Path(folder), request_id, metadata=dict(facts))
    stack.callback(file.close)
    return file


async def _outcome(plan: Plan, request: RolloutRequest, model: Model, facts: dict[str, Any]) -> Outcome:
    """How it ended; a place that cannot be opened, such as a sandbox that this machine has not, fails it too."""
    from runner.runtime.boundary import failure_of
    from runner.runtime.rollout import run_rollout

    try:
        async with plan.open(model=model) as live:
            _note(live.notices, facts)
            ended = await run_rollout(live, request, graded=False)
    except RolloutError as error:
        failure = failure_of(error)
        return Outcome(request, "failed", failure.kind, failure=failure)
    reward = ended.sample.agent_reward
    # Nobody grades here but the agent and its tools.
    return ended if reward is None or ended.status != "ungraded" else replace(ended, status="scored", reward=reward)


def _note(notices: Sequence[str], facts: dict[str, Any]) -> None:
    """What this machine cannot give, such as a sandbox that holds nothing: in the trajectory, and said once."""
    if notices:
        facts["notices"] = list(notices)
    for notice in notices:
        if notice not in _noticed:
            _noticed.add(notice)
            _log.warning("%s", notice)


def _ended(part: Playing | None, telling: Telling, view: Trajectory, outcome: Outcome) -> Trajectory:
    record = to_record(outcome, {})
    own = None if part is None else part.own
    if own is not None:
        own._hears = None
        return settled(own, record)
    if telling.steps is not None:
        marked = AGENT_ANSWER in outcome.sample.info
        telling.steps.end(answer_of(record), finished=is_finished(record), marked=marked)
    view._hears = None
    return settled(view, record)


def _reward_lives(trajectory: Trajectory, left: list[tuple[str, Any, float]]) -> None:
    """Rewards that tools gave at the end of their lives go to their last results."""
    for name, arguments, reward in left:
        if arguments is not None:
            continue
        for step in reversed(trajectory.steps):
            if step.step_type is StepType.ACTION_RESULT and step.tool_name == name:
                step.reward_score = (step.reward_score or 0.0) + reward
                break
        trajectory.final_reward = (trajectory.final_reward or 0.0) + reward


def failed(request_id: str, error: Exception) -> Trajectory:
    """The trajectory of a prompt that could not even begin."""
    failure = Failure("config", "bad_request", f"{type(error).__name__}: {error}")
    trajectory = unannounced(request_id)
    trajectory.metadata = {"status": "failed", "stop_reason": failure.kind, "failure": failure.to_json()}
    _say(trajectory)
    return trajectory


def _say(trajectory: Trajectory) -> None:
    metadata = trajectory.metadata
    failure = metadata.get("failure")
    if failure and metadata.get("status") == "failed":
        where = f" (at {failure['where']})" if failure.get("where") else ""
        said = f"{failure['boundary']}/{failure['kind']}: {failure['message']}{where}"
        _log.warning("trajectory %s failed: %s", trajectory.request_id, said)
        return
    _log.info(
        "trajectory %s: %s after %d steps", trajectory.request_id, metadata.get("stop_reason"), len(trajectory.steps)
    )
    for step in trajectory.steps:
        _log.debug("trajectory %s: %s %s", trajectory.request_id, step.step_type.value, step.content)
