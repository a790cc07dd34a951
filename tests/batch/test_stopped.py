"""A run that was stopped with work left is incomplete, even where every row has a line already."""

from __future__ import annotations

from typing import Any

BROKEN = [{"id": f"b{n}", "question": "broken", "answer": "1", "hard": False, "kind": "k"} for n in range(6)]


def test_a_retry_that_the_breaker_stopped_is_not_complete(project: Any) -> None:
    project.write(BROKEN)
    first = project.run("eval.breaker=0")
    assert first.summary["outcomes"]["failed"] == 12 and first.summary["complete"]
    again = project.run("eval.breaker=3", "eval.concurrency=1", retry_failed=True)
    assert again.summary["rollouts"]["missing"] == 0
    assert again.stopped and not again.summary["complete"]
    assert again.exit_code == 3


def test_a_stop_when_nothing_was_left_is_no_news(project: Any) -> None:
    project.write(BROKEN[:3])
    result = project.run("eval.breaker=6", "eval.max_failed=1.0")
    assert result.summary["outcomes"]["failed"] == 6
    assert result.stopped == "" and result.summary["complete"] and result.exit_code == 0
