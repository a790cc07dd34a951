"""What can be counted of trajectories, one and many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.agentic.trajectory import Trajectory

_FINE = ("ok", None)


def statistics_of(trajectory: Trajectory) -> dict[str, Any]:
    """The numbers of one trajectory. Times are in seconds, 0.0 where nobody measured; `turns` are model calls."""
    metadata, steps = trajectory.metadata, trajectory.steps
    usage, timing = _table(metadata, "usage"), _table(metadata, "timing")
    calls = trajectory.get_tool_calls()
    results = [step for step in steps if step.step_type.value == "action_result"]
    return {
        "request_id": trajectory.request_id,
        "is_completed": trajectory.is_completed,
        "status": metadata.get("status"),
        "stop_reason": metadata.get("stop_reason"),
        "steps": len(steps),
        "steps_by_type": dict(Counter(step.step_type.value for step in steps)),
        "turns": metadata.get("turns", 0),
        "tool_calls": len(calls),
        "tool_calls_by_name": dict(Counter(call.tool_name or "" for call in calls)),
        "failed_tool_calls": sum(step.metadata.get("status") not in _FINE for step in results),
        "total_reward": trajectory.get_total_reward(),
        "final_reward": trajectory.final_reward,
        "total_tokens": trajectory.total_tokens,
        "input_tokens": usage.get("input_tokens", 0),
        "output_tokens": usage.get("output_tokens", 0),
        "cost": metadata.get("cost"),
        "seconds": timing.get("total", 0.0),
        "model_seconds": timing.get("model", 0.0),
        "tool_seconds": timing.get("tool", 0.0),
    }


def summary_of(trajectories: Iterable[Trajectory]) -> dict[str, Any]:
    """The numbers of many: sums, means, and how they ended. A mean of nothing is None."""
    told = [statistics_of(each) for each in trajectories]
    names: Counter[str] = Counter()
    for each in told:
        names.update(each["tool_calls_by_name"])
    rewards = [each["final_reward"] for each in told if each["final_reward"] is not None]
    return {
        "trajectories": len(told),
        "completed": sum(each["is_completed"] for each in told),
        "statuses": dict(Counter(str(each["status"]) for each in told)),
        "stop_reasons": dict(Counter(str(each["stop_reason"]) for each in told)),
        "steps": sum(each["steps"] for each in told),
        "mean_steps": _mean([each["steps"] for each in told]),
        "turns": sum(each["turns"] for each in told),
        "tool_calls": sum(names.values()),
        "tool_calls_by_name": dict(names.most_common()),
        "failed_tool_calls": sum(each["failed_tool_calls"] for each in told),
        "rewarded": len(rewards),
        "mean_reward": _mean(rewards),
        "total_tokens": sum(each["total_tokens"] for each in told),
        "input_tokens": sum(each["input_tokens"] for each in told),
        "output_tokens": sum(each["output_tokens"] for each in told),
        "cost": _sum([each["cost"] for each in told if each["cost"] is not None]),
        "seconds": sum(each["seconds"] for each in told),
        "mean_seconds": _mean([each["seconds"] for each in told]),
    }


def _table(metadata: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = metadata.get(key)
    return found if isinstance(found, Mapping) else {}


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _sum(values: list[float]) -> float | None:
    return sum(values) if values else None
