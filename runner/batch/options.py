"""What a command asks of a run beyond what the file says, and what it gets back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from runner.batch.gates import GateResult
from runner.tools.tool import Ask

GRACE = 5.0
"""Seconds that running rollouts get to finish after a first Ctrl-C."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How to run. `name` and `output` override the file's; `cell` is a matrix cell's name; `command` the command line,
    without secrets, for the manifest.

    `record` takes every model call, `log` the events of every rollout. With `tools` "record" what the tools answer goes
    to `cassette`, with "replay" it comes from there; by default `cassettes/NAME.jsonl` beside the file. `ask` is
    asked about calls that need somebody's consent."""

    name: str | None = None
    output: Path | None = None
    cell: str = ""
    fresh: bool = False
    retry_failed: bool = False
    grace: float = GRACE
    record: Path | None = None
    log: Path | None = None
    tools: Literal["live", "record", "replay"] = "live"
    cassette: Path | None = None
    ask: Ask | None = None
    command: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended. `stopped` says why it ended early, empty when it did not; `exit_code` is the command's."""

    folder: Path
    summary: Mapping[str, Any]
    gates: Sequence[GateResult] = ()
    stopped: str = ""
    interrupted: bool = False
    too_many_failed: bool = False
    cell: str = ""

    @property
    def exit_code(self) -> int:
        """130 interrupted, 3 incomplete or too many failed, 2 a gate failed, else 0."""
        if self.interrupted:
            return 130
        if not self.summary["complete"] or self.too_many_failed:
            return 3
        return 0 if all(gate.passed for gate in self.gates) else 2
