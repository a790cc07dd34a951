"""`Archive`: a folder for each rollout: its trajectory, the facts about it, and the files its code left.

Written after the callbacks, in a thread, each file in one step. A failure is logged and changes nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from runner.records.completion import ToolSpec
from runner.records.file_name import segment
from runner.records.rollout import Outcome
from runner.serve.archive.ack_report import Report, report_of
from runner.serve.archive.atif import dump, plain
from runner.serve.archive.trajectory import trajectory_of
from runner.serve.start import Start

__all__ = ["Archive", "Report", "report_of"]

log = logging.getLogger(__name__)


class Archive:
    """`<root>/<rollout id>/` with `trajectory.json`, `diagnostics.json` and `artifacts/`."""

    def __init__(self, root: Path, name: str, version: str) -> None:
        self.root = root
        self._agent = {"name": name, "version": version}

    def folder(self, rollout_id: str) -> Path:
        """A rollout's folder: its id if that is a legal name, else a safe name for it. Not made."""
        return self.root / segment(rollout_id)

    def artifacts(self, rollout_id: str) -> Path:
        """Where its code may leave files. Not made; put it into `records.artifacts.artifacts_at` before it plays."""
        return self.folder(rollout_id) / "artifacts"

    async def write(
        self,
        start: Start,
        outcome: Outcome,
        tools: Sequence[ToolSpec],
        reports: Sequence[Report],
        facts: Mapping[str, Any],
    ) -> None:
        """Write a rollout's files; `facts` go into its diagnostics. Never raises, except cancellation."""
        try:
            await asyncio.to_thread(self._write, start, outcome, tools, reports, facts)
        except Exception as error:
            log.warning("rollout %s is not archived: %s: %s", start.rollout_id, type(error).__name__, error)

    def _write(
        self,
        start: Start,
        outcome: Outcome,
        tools: Sequence[ToolSpec],
        reports: Sequence[Report],
        facts: Mapping[str, Any],
    ) -> None:
        folder = self.folder(start.rollout_id)
        folder.mkdir(parents=True, exist_ok=True)
        _replace(folder / "diagnostics.json", dump(diagnostics_of(start, outcome, facts)))
        document = trajectory_of(self._agent, start, outcome, tools, reports)
        if document is None:
            (folder / "trajectory.json").unlink(missing_ok=True)  # an earlier attempt's, of the same id
        else:
            _replace(folder / "trajectory.json", dump(document))
        _keep_plain_files(folder / "artifacts")


def diagnostics_of(start: Start, outcome: Outcome, facts: Mapping[str, Any]) -> dict[str, Any]:
    """What is known of a rollout besides its conversation: nothing secret, for keys and urls are not in it."""
    document: dict[str, Any] = {
        "rollout_id": start.rollout_id,
        "dialect": start.dialect,
        "status": outcome.status,
        "stop_reason": outcome.stop_reason,
        "agent_ended": outcome.ended,
        "reward": outcome.reward,
        "scores": {name: score.to_json() for name, score in outcome.scores.items()},
        "failure": None if outcome.failure is None else outcome.failure.to_json(),
        "timing": dict(outcome.timing),
        "cost_usd": outcome.cost,
        "model_calls": len(outcome.sample.calls),
        "model_failures": [call["error"] for call in outcome.sample.calls if "error" in call],
        "tool_calls": list(outcome.sample.tool_spans),
        "notes": list(start.notes),
        **facts,
    }
    kept: dict[str, Any] = plain({name: value for name, value in document.items() if value not in (None, [], {}, "")})
    return kept


def _replace(path: Path, content: bytes) -> None:
    """Write beside, then rename: a reader sees the old file or the new one."""
    half = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        half.write_bytes(content)
        half.replace(path)
    except OSError:
        with suppress(OSError):
            half.unlink(missing_ok=True)
        raise


def _keep_plain_files(folder: Path) -> None:
    """Take links and special files out: they would show a reader another file than the rollout left, or hang it."""
    if folder.is_symlink():
        folder.unlink()
        return
    for here, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(here, name)
            mode = path.lstat().st_mode
            if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
                path.unlink()
