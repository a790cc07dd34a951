"""A saved trajectory as a person reads it; many of them, a line each."""

from __future__ import annotations

from collections.abc import Iterable

from runner.agentic.trajectory import StepType, Trajectory, TrajectoryStep
from runner.batch.figures import Plain, clip, duration, number
from runner.batch.transcript import safe
from runner.diag.style import Style


def trajectory_text(trajectory: Trajectory, style: Style | None = None) -> str:
    """The text of one: how it ended, its system prompt, its steps."""
    style = style or Plain()
    parts = [_head(trajectory, style)]
    if trajectory.system_prompt:
        parts.append(_block("system prompt", "", safe(trajectory.system_prompt), style))
    parts += [_step(place, step, style) for place, step in enumerate(trajectory.steps, 1)]
    failure = trajectory.metadata.get("failure")
    if failure and trajectory.metadata.get("status") == "failed":
        parts.append(f"{style.bad('Failure')}  {failure['boundary']}/{failure['kind']}\n  {safe(failure['message'])}")
    return "\n\n".join(parts)


def trajectories_text(trajectories: Iterable[Trajectory], style: Style | None = None) -> str:
    """A line for each, and a last one for all."""
    style = style or Plain()
    found = list(trajectories)
    lines = [f"{safe(each.request_id):<24}  {_facts(each)}" for each in found]
    done = sum(each.is_completed for each in found)
    steps = sum(len(each.steps) for each in found)
    said = f"{len(found)} trajectories, {done} completed, {steps} steps"
    return "\n".join([*(clip(line, style.width) for line in lines), style.dim(said)])


def _head(trajectory: Trajectory, style: Style) -> str:
    return f"{style.bold(safe(trajectory.request_id))}   {_facts(trajectory)}"


def _facts(trajectory: Trajectory) -> str:
    told = trajectory.statistics()
    facts = [
        "completed" if trajectory.is_completed else "not completed",
        str(told["stop_reason"] or "unknown"),
        "no reward" if trajectory.final_reward is None else f"reward {number(trajectory.final_reward)}",
        f"{told['steps']} steps",
        f"{told['tool_calls']} tool calls",
        f"{told['total_tokens']:,} tokens" if told["total_tokens"] else "",
        duration(float(told["seconds"])),
    ]
    return " · ".join(fact for fact in facts if fact)


def _step(place: int, step: TrajectoryStep, style: Style) -> str:
    facts = [str(step.metadata.get("status") or "")]
    if step.reward_score is not None:
        facts.append(f"reward {number(step.reward_score)}")
    lines = [safe(step.content)] if step.content else []
    if step.step_type is StepType.ACTION and step.tool_name:
        arguments = ", ".join(f"{name}={value!r}" for name, value in (step.tool_args or {}).items())
        lines.append(style.name(f"→ {safe(step.tool_name)}({safe(arguments)})"))
    title = f"{place} {step.step_type.value}"
    return _block(title, " · ".join(fact for fact in facts if fact), "\n".join(lines) or style.dim("(empty)"), style)


def _block(title: str, note: str, body: str, style: Style) -> str:
    rule = "─" * max(3, style.width - 5 - len(title) - len(note) - (1 if note else 0))
    return f"{style.dim('──')} {style.bold(title)} {style.dim(rule)}{' ' if note else ''}{style.dim(note)}\n{body}"
