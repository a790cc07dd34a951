"""A project on disk with a scripted model: real files, the real plan, no network."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runner.batch.options import RunOptions, RunResult
from runner.batch.run import Control, evaluate, plan_run
from runner.batch.standing import Watcher
from runner.build.plan import Plan, build
from runner.config.layers import Override
from runner.config.load import load

WORKFLOW = """\
[workflow]
name  = "sums"
user  = "{{ row.question }}"
label = "{{ row.answer }}"

[model]
id       = "scripted/pupil"
provider = "scripted"

[[model.rules]]
when  = "'broken' in row.question"
error = "connection refused by 10.0.0.1"

[[model.rules]]
when  = "'slow' in row.question"
reply = "late"
delay = "30s"

[[model.rules]]
when  = "row.hard and attempt % 2 == 1"
reply = "I guess 0"

[[model.rules]]
reply = "{{ row.answer }}"

[graders.answer]
kind = "exact"

[dataset]
path = "rows.jsonl"
id   = "id"

[eval]
attempts = 2
concurrency = 8
"""


def easy(count: int) -> list[dict[str, Any]]:
    """Rows that the scripted model answers; every third is hard: its odd attempts are wrong."""
    return [
        {"id": f"q{n}", "question": f"{n} + 1?", "answer": str(n + 1), "hard": n % 3 == 0, "kind": f"k{n % 2}"}
        for n in range(count)
    ]


@dataclass
class Project:
    """A folder with a workflow.toml and its rows."""

    folder: Path

    @property
    def file(self) -> Path:
        return self.folder / "workflow.toml"

    def write(self, rows: Sequence[dict[str, Any]], workflow: str = WORKFLOW) -> None:
        self.file.write_text(workflow)
        (self.folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def plan(self, *settings: str) -> Plan:
        return build(load(self.file, [Override.from_set(word) for word in settings]))

    def run(
        self, *settings: str, watcher: Watcher | None = None, control: Control | None = None, **options: Any
    ) -> RunResult:
        plan = self.plan(*settings)
        return asyncio.run(evaluate(plan, RunOptions(**options), watcher, control))

    def planned(self, *settings: str, **options: Any) -> str:
        return plan_run(self.plan(*settings), RunOptions(**options))[0].text()

    def lines(self, run: str = "sums") -> list[dict[str, Any]]:
        text = (self.folder / "runs" / run / "rollouts.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path)
    made.write(easy(6))
    return made


@pytest.fixture
def rows() -> Callable[[int], list[dict[str, Any]]]:
    return easy
