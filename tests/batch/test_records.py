"""What a real run leaves on disk fits `schemas/`, whatever the outcome, and holds what readers rely on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from runner.batch.run import Control
from runner.batch.standing import Standing, Watcher

SCHEMAS = Path(__file__).parents[2] / "schemas"
WORKFLOW = """\
[workflow]
name   = "all"
system = "Add."
user   = "{{ row.question }}"
label  = "{{ row.answer }}"

[model]
provider = "scripted"
price    = { input = 1.0, output = 2.0 }
[[model.rules]]
when  = "row.how == 'fail'"
error = "connection refused"
[[model.rules]]
when  = "row.how == 'hang'"
reply = "late"
delay = "60s"
[[model.rules]]
when       = "row.how == 'tool' and turn == 0"
tool_calls = [{ name = "add", arguments = { a = 2, b = 2 } }, { name = "ad", arguments = {} }]
[[model.rules]]
when          = "row.how == 'long'"
reply         = "4 and"
finish_reason = "length"
[[model.rules]]
reply     = "4"
reasoning = "2 and 2"

[tools.add]
call = "./sums.py:add"

[graders.answer]
kind = "exact"
[graders.moody]
kind = "python"
call = "./sums.py:moody"

[dataset]
path = "rows.jsonl"
id   = "id"

[eval]
attempts  = 2
group_by  = ["how"]
gates     = [{ metric = "pass@1", min = 0.1 }]
breaker   = 0
"""
SUMS = '''\
def add(a: int, b: int) -> int:
    """Add."""
    return a + b

def moody(solution_str, ground_truth, extra_info):
    if extra_info["how"] == "mute":
        raise RuntimeError("not today")
    return 0.5
'''
HOWS = ("plain", "tool", "long", "mute", "fail", "hang", "column")
FIELDS = {
    "schema", "rollout_id", "row", "row_id", "attempt", "outcome", "stop_reason", "reward", "scores", "failure",
    "messages", "calls", "usage", "cost", "timing", "digests",
}  # fmt: skip
SUMMARY = {"rows", "attempts", "outcomes", "reward", "pass_at", "graders", "usage", "cost", "wall_seconds"}


class StopsAtTheLast(Watcher):
    """Interrupts when only the rollouts that hang are left, so that they end as cancelled."""

    def __init__(self, control: Control) -> None:
        self.control = control
        self.ends = 0

    def told(self, text: str) -> None: ...
    def began(self, standing: Standing) -> None: ...
    def ended(self, standing: Standing) -> None: ...

    def moved(self, standing: Standing) -> None:
        self.ends += 1
        if self.ends == 2 * len(HOWS) - 2:
            self.control.interrupt()


def schema(name: str) -> Draft202012Validator:
    return Draft202012Validator(json.loads((SCHEMAS / f"{name}.schema.json").read_text()))


@pytest.fixture
def run(project: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    (project.folder / "sums.py").write_text(SUMS)
    rows = [{"id": how, "how": how, "question": "2 + 2?", "answer": "4"} for how in HOWS]
    del rows[-1]["question"]
    project.write(rows, WORKFLOW)
    control = Control()
    result = project.run(watcher=StopsAtTheLast(control), control=control, grace=0.05)
    assert result.exit_code == 130
    return project.lines("all"), json.loads((project.folder / "runs" / "all" / "summary.json").read_text())


def test_every_line_and_the_summary_fit_their_schemas(run: Any) -> None:
    lines, summary = run
    assert {line["outcome"] for line in lines} == {"scored", "ungraded", "failed", "cancelled"}
    assert len(lines) == 2 * len(HOWS)
    for line in lines:
        assert [error.message for error in schema("rollout").iter_errors(line)] == [], line["row_id"]
        assert line.keys() >= FIELDS
    assert [error.message for error in schema("summary").iter_errors(summary)] == []
    assert summary.keys() >= SUMMARY


def test_a_line_says_how_it_ended_and_keeps_every_call(run: Any) -> None:
    by_row = {line["row_id"]: line for line in run[0] if line["attempt"] == 0}
    for how, line in by_row.items():
        assert (line["reward"] is None) == (line["outcome"] != "scored"), how
        assert (line["failure"] is None) == (line["outcome"] in ("scored", "cancelled")), how
    assert by_row["plain"]["scores"]["answer"].keys() >= {"value", "reason"}
    assert by_row["plain"]["scores"]["answer"]["value"] == 1.0
    assert {how: line["rollout_id"] for how, line in by_row.items()} == {how: f"all/{how}/0" for how in HOWS}
    assert by_row["long"]["stop_reason"] == "max_tokens"
    assert by_row["mute"]["scores"]["moody"]["value"] is None
    assert by_row["mute"]["scores"]["moody"]["failure"]["boundary"] == "grader"
    assert by_row["fail"]["failure"]["boundary"] == "model"
    assert [message["role"] for message in by_row["tool"]["messages"]] == [
        "system", "user", "assistant", "tool", "tool", "assistant",
    ]  # fmt: skip
    calls = by_row["tool"]["calls"]
    assert len(calls) == 2
    for call in calls:
        assert call.keys() >= {"latency", "usage", "finish_reason", "retries"}
    assert by_row["tool"]["cost"] == pytest.approx(
        by_row["tool"]["usage"]["input_tokens"] * 1e-6 + by_row["tool"]["usage"]["output_tokens"] * 2e-6
    )


def test_the_summary_counts_what_the_lines_say(run: Any) -> None:
    lines, summary = run
    counted = {name: sum(line["outcome"] == name for line in lines) for name in summary["outcomes"]}
    assert summary["outcomes"] == counted
    rewards = [line["reward"] for line in lines if line["reward"] is not None]
    assert summary["reward"]["n"] == len(rewards) == counted["scored"]
    assert summary["reward"]["mean"] == pytest.approx(sum(rewards) / len(rewards))
    assert set(summary["pass_at"]) == {"1", "2"}
    assert summary["usage"]["input_tokens"] == sum(line["usage"]["input_tokens"] for line in lines)
