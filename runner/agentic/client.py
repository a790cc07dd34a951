"""`TrajectoryClient`: saved trajectories, loaded, filtered, counted and exported."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from runner.agentic.saving import is_saved, load_trajectory, saved_in
from runner.agentic.statistics import summary_of
from runner.agentic.trajectory import Trajectory
from runner.agentic.view import trajectories_in

JOURNAL = "rollouts.jsonl"


class TrajectoryClient:
    """The trajectories of `source`: a folder of saved ones, one file of those, or a run of `osmosis-run eval`.

    Raises ValueError for a place that holds none of these.
    """

    def __init__(self, source: str | Path | Sequence[Trajectory]) -> None:
        self.trajectories = _loaded(Path(source)) if isinstance(source, str | Path) else list(source)

    def __len__(self) -> int:
        return len(self.trajectories)

    def __iter__(self) -> Iterator[Trajectory]:
        return iter(self.trajectories)

    def get(self, request_id: str) -> Trajectory | None:
        """The last one of that name, or None."""
        return next((each for each in reversed(self.trajectories) if each.request_id == request_id), None)

    def filter(
        self,
        where: Callable[[Trajectory], bool] | None = None,
        *,
        is_completed: bool | None = None,
        status: str | None = None,
        stop_reason: str | None = None,
        tool: str | None = None,
        min_reward: float | None = None,
    ) -> TrajectoryClient:
        """Those for which all that is said holds: a function, how they ended, a tool they called, a reward."""

        def wanted(each: Trajectory) -> bool:
            return (
                (where is None or where(each))
                and is_completed in (None, each.is_completed)
                and status in (None, each.metadata.get("status"))
                and stop_reason in (None, each.metadata.get("stop_reason"))
                and (tool is None or any(call.tool_name == tool for call in each.get_tool_calls()))
                and (min_reward is None or (each.final_reward is not None and each.final_reward >= min_reward))
            )

        return TrajectoryClient([each for each in self.trajectories if wanted(each)])

    def summary(self) -> dict[str, Any]:
        """Counts of trajectories, steps, calls and tokens, mean rewards and times, and how they ended."""
        return summary_of(self.trajectories)

    def export_messages(self, path: str | Path) -> int:
        """Write one line `{"messages": [...]}` for each, the system prompt first; how many. Replaces the file."""
        with Path(path).open("w", encoding="utf-8") as file:
            for each in self.trajectories:
                messages = each.get_messages(include_system_prompt=True)
                file.write(json.dumps({"messages": messages}, ensure_ascii=False) + "\n")
        return len(self.trajectories)


def _loaded(source: Path) -> list[Trajectory]:
    if source.is_file():
        return [load_trajectory(source)] if is_saved(source) else list(trajectories_in(source))
    if (source / JOURNAL).is_file():
        return list(trajectories_in(source / JOURNAL))
    if not source.is_dir():
        raise ValueError(f"{source}: there is nothing")
    found = [load_trajectory(path) for path in saved_in(source)]
    if not found:
        raise ValueError(f"{source}: it holds no saved trajectories and no {JOURNAL}")
    return found
