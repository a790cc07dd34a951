"""A summary and a transcript fit the terminal they are printed to."""

from __future__ import annotations

from typing import Any

import pytest

from runner.batch.figures import PAGE, Plain
from runner.batch.text import summary_text
from runner.batch.transcript import transcript

BROKEN = {"id": "x", "question": "broken", "answer": "0", "hard": False, "kind": "k9"}


@pytest.mark.parametrize("width", [60, 66, 72, PAGE])
def test_no_line_is_longer_than_the_terminal(project: Any, rows: Any, width: int) -> None:
    project.write([*rows(30), BROKEN])
    gates = "eval.gates=[{metric='pass@1', min=0.1}]"
    summary = project.run("eval.group_by=['kind']", gates).summary
    drawn = summary_text(summary, Plain(width), run="runs/sums")
    commands = [line for line in drawn.splitlines() if line.strip().startswith("osmosis-run")]
    too_long = [line for line in drawn.splitlines() if len(line) > width and line not in commands]
    assert too_long == [], "a command is not broken, everything else is"
    assert ("│" in drawn) == (width > 70)
    assert "reward                0." in drawn
    for line in project.lines()[:3]:
        assert all(len(each) <= width for each in transcript(line, Plain(width)).splitlines())
