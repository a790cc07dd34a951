"""Scores of graders that did not change stand: nobody is asked, or paid, twice."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from runner.batch.kept import unchanged
from runner.batch.regrade import regrade

COUNTING = """
from pathlib import Path

def judge(solution_str, ground_truth, extra_info):
    with (Path(__file__).parent / "asked.txt").open("a") as file:
        file.write("asked\\n")
    return 1.0
"""

GRADERS = """
[graders.dear]
kind = "python"
call = "./judging.py:judge"
"""


@pytest.fixture
def judged(project: Any) -> Any:
    (project.folder / "judging.py").write_text(COUNTING)
    project.file.write_text(project.file.read_text() + GRADERS)
    project.run()
    return project


def asked(folder: Path) -> int:
    return len((folder / "asked.txt").read_text().splitlines())


def test_a_change_of_one_grader_leaves_the_others_scores_alone(judged: Any) -> None:
    assert asked(judged.folder) == 12
    result = judged.run("graders.answer.ignore_case=true")
    assert asked(judged.folder) == 12
    again = [line for line in judged.lines() if line.get("regraded")]
    assert len(again) == 12 and all(line["scores"]["dear"]["value"] == 1.0 for line in again)
    assert result.summary["graders"]["dear"]["n"] == 12


def test_regrade_asks_only_what_changed_and_everything_when_told(judged: Any) -> None:
    run = judged.folder / "runs" / "sums"
    _, count = asyncio.run(regrade(judged.plan("graders.answer.ignore_case=true"), run))
    assert (count.graded, asked(judged.folder)) == (12, 12)
    _, count = asyncio.run(regrade(judged.plan("graders.answer.ignore_case=true"), run, everything=True))
    assert (count.graded, asked(judged.folder)) == (12, 24)


def test_another_label_asks_everybody(judged: Any) -> None:
    judged.run("workflow.label='{{ row.answer }}!'")
    assert asked(judged.folder) == 24


def test_which_facts_concern_whom() -> None:
    names = ("a", "a.b", "c")
    before = {
        "graders.a.kind": "exact",
        'graders."a.b".kind': "exact",
        "graders.c.kind": "exact",
        "reward.combine": "min",
    }
    assert unchanged(before, {**before, "graders.a.kind": "math"}, names) == {"a.b", "c"}
    assert unchanged(before, {**before, 'graders."a.b".kind': "math"}, names) == {"a", "c"}
    assert unchanged(before, {**before, "reward.combine": "product"}, names) == set(names)
    assert unchanged(before, {**before, "roles.judge.id": "x"}, names) == set()
    assert unchanged(before, {**before, "graders.c.call (g.py)": "new"}, names) == {"a", "a.b"}
