"""What stops a run early, and what does not; and the folders that runs and cells are kept in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runner.batch.guards import Breaker
from runner.datasets.dataset import DatasetError
from runner.records.failure import Failure
from runner.records.rollout import Outcome, RolloutRequest
from runner.store.run_folder import RunFolder, distinct_name

ROWS = [f"r{number}" for number in range(40)]
WORKFLOW = """\
[workflow]
user  = "{{ row.question }}"
label = "4"

[model]
provider = "scripted"
[[model.rules]]
when  = "'broken' in row.question"
error = "connection refused"
[[model.rules]]
reply = "4"
delay = "50ms"

[graders.answer]
kind = "exact"

[dataset]
path = "rows.jsonl"
id   = "id"
"""


def ended(row: str, attempt: int = 0, kind: str | None = None) -> Outcome:
    request = RolloutRequest(f"{row}/{attempt}", (), row_id=row, attempt=attempt)
    if kind is None:
        return Outcome(request, "scored", "final_answer", 1.0)
    return Outcome(request, "failed", kind, failure=Failure("model", kind, "it is down"))


def told(breaker: Breaker, ends: list[Outcome]) -> list[str]:
    return [why for outcome in ends if (why := breaker.add(outcome))]


def test_the_breaker_counts_in_the_order_of_beginning() -> None:
    breaker = Breaker(3)
    for row in ROWS:
        breaker.begins(row, 0)
    scattered = [ended(row, kind="timeout") for row in ROWS[::2]]
    assert told(breaker, scattered) == [], "between any two of them something else still runs"
    assert told(breaker, [ended(ROWS[1])]) == []
    assert told(breaker, [ended(ROWS[3], kind="model_refused")]) == [], "another failure"
    assert told(breaker, [ended(ROWS[5], kind="timeout")]) == ["the same failure 3 times in a row: "
                                                               "model/timeout: it is down"]  # fmt: skip


def test_one_row_that_always_fails_does_not_trip_the_breaker() -> None:
    breaker = Breaker(3)
    for attempt in range(8):
        breaker.begins("poison", attempt)
    breaker.begins("next", 0)
    assert told(breaker, [ended("poison", attempt, "timeout") for attempt in range(8)]) == []
    assert told(breaker, [ended("next", 0, "timeout")])[0].startswith("the same failure 9 times in a row")


def test_quick_failures_among_slow_answers_stop_nothing(project: Any) -> None:
    """Every fourth row fails at once, so the first dozen of rollouts to end all failed in the same way."""
    rows = [{"id": row, "question": "broken" if place % 4 == 0 else "2 + 2?"} for place, row in enumerate(ROWS)]
    project.write(rows, WORKFLOW)
    result = project.run("eval.max_failed=1.0", "eval.concurrency=40", name="run")
    assert [line["outcome"] for line in project.lines("run")[:10]] == ["failed"] * 10
    assert (result.stopped, result.exit_code) == ("", 0)
    assert result.summary["outcomes"] == {"scored": 30, "ungraded": 0, "failed": 10, "cancelled": 0}


def test_a_stop_that_left_nothing_out_is_no_stop(project: Any) -> None:
    project.write([{"id": row, "question": "broken"} for row in ROWS[:9]], WORKFLOW)
    result = project.run("eval.max_failed=1.0", "eval.concurrency=9", name="run")
    assert (result.summary["complete"], result.summary["stopped"], result.stopped) == (True, "", "")


def test_an_unreadable_dataset_leaves_no_run_folder(project: Any) -> None:
    (project.folder / "rows.jsonl").write_text('{"id": "a", "question": \n')
    with pytest.raises(DatasetError):
        project.run()
    assert not (project.folder / "runs" / "sums").exists()


def test_a_folder_that_is_used_or_not_ours_is_not_discarded(tmp_path: Path) -> None:
    used = RunFolder.create(tmp_path / "used")
    used.write_manifest({"rows": 1})
    used.discard_if_unused()
    assert used.manifest_path.is_file()
    shared = RunFolder.create(tmp_path / "shared")
    (shared.path / "notes.txt").write_text("mine")
    shared.discard_if_unused()
    assert (shared.path / "notes.txt").read_text() == "mine"


def test_cells_never_share_a_folder() -> None:
    assert distinct_name("sampling.temperature=0.7,limits.turns=2") == "sampling.temperature-0.7-limits.turns-2"
    long = "workflow.system=" + "be kind " * 40
    names = [
        "model.id=a/b",
        "model.id=a-b",
        "model.id=a b",
        'x=["a"]',
        'x=["a","b"]',
        long + "1",
        long + "2",
        "x=\ud800",
    ]
    made = [distinct_name(name) for name in names]
    assert len(set(made)) == len(names)
    assert all(len(name) <= 100 for name in made)
