"""`evaluate`: nothing is lost, nothing is played twice, nothing is counted that is not on disk."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from runner.batch.options import RunOptions
from runner.batch.past_run import PastRun
from runner.batch.run import Control, evaluate
from runner.batch.standing import Standing
from runner.datasets.dataset import DatasetError
from runner.store.errors import RunLocked
from runner.store.run_folder import RunFolder

BROKEN = {"id": "b", "question": "broken", "answer": "x", "hard": False, "kind": "k0"}


class Looker:
    """A watcher that keeps what it saw, and may act on it."""

    def __init__(self, act: Any = None) -> None:
        self.seen: list[int] = []
        self.said: list[str] = []
        self.act = act

    def began(self, standing: Standing) -> None:
        self.seen.append(standing.done)

    def moved(self, standing: Standing) -> None:
        self.seen.append(standing.done)
        if self.act is not None:
            self.act(standing)

    def told(self, text: str) -> None:
        self.said.append(text)

    def ended(self, standing: Standing) -> None:
        self.last = standing


def test_a_run_leaves_its_journal_its_manifest_and_its_summary(project: Any) -> None:
    result = project.run()
    assert result.exit_code == 0
    keys = [(line["row_id"], line["attempt"]) for line in project.lines()]
    assert sorted(keys) == [(f"q{row}", attempt) for row in range(6) for attempt in range(2)]
    summary = json.loads((result.folder / "summary.json").read_text())
    assert summary == result.summary
    assert summary["outcomes"] == {"scored": 12, "ungraded": 0, "failed": 0, "cancelled": 0}
    assert summary["reward"]["mean"] == pytest.approx(10 / 12)
    assert summary["pass_at"]["1"]["value"] == pytest.approx(10 / 12)
    assert summary["pass_at"]["2"]["value"] == 1.0
    assert summary["pass_all"]["2"]["value"] == pytest.approx(4 / 6)
    assert summary["graders"]["answer"]["n"] == 12
    assert summary["complete"] is True


def test_the_same_command_plays_nothing_again(project: Any) -> None:
    first = project.run()
    before = project.lines()
    looker = Looker()
    second = project.run(watcher=looker)
    assert project.lines() == before
    assert {**second.summary} == {**first.summary}
    assert looker.last.reused == 12
    assert looker.last.reward.value == pytest.approx(10 / 12)
    assert "12 re-used, 0 to run." in looker.said[0]


def test_more_attempts_and_more_rows_only_add(project: Any, rows: Any) -> None:
    project.run()
    project.write(rows(7))
    result = project.run("eval.attempts=3")
    assert len(project.lines()) == 21
    assert result.summary["rollouts"] == {"planned": 21, "recorded": 21, "missing": 0}


def test_fewer_rows_are_summarised_without_the_others(project: Any) -> None:
    project.run()
    result = project.run("dataset.limit=2", "eval.attempts=1")
    assert (result.summary["rows"], result.summary["rollouts"]["recorded"]) == (2, 2)
    assert len(project.lines()) == 12


def test_a_changed_prompt_plays_again_and_says_which_line(project: Any) -> None:
    project.run()
    project.file.write_text(project.file.read_text().replace("{{ row.question }}", "Please: {{ row.question }}"))
    text = project.planned()
    assert text.startswith("6 rows x 2 attempts: 12 to run. Re-run because workflow.user changed (")
    assert text.endswith("workflow.toml:3:9).")
    result = project.run()
    assert len(project.lines()) == 24
    assert result.summary["rollouts"]["recorded"] == 12


def test_an_operational_key_changes_nothing(project: Any) -> None:
    project.run()
    settings = ("eval.concurrency=2", "eval.breaker=3", "eval.budget.cost='9 USD'", "eval.max_failed=0.5")
    assert project.planned(*settings) == "6 rows x 2 attempts: 12 re-used, 0 to run."


def test_a_changed_grader_grades_again_without_asking_the_model(project: Any) -> None:
    project.run()
    assert "12 re-graded, 0 to run. Re-graded because graders.answer.expect changed" in project.planned(
        "graders.answer.expect='I guess 0'"
    )
    result = project.run("graders.answer.expect='I guess 0'")
    again = [line for line in project.lines() if line.get("regraded")]
    assert len(again) == 12
    assert result.summary["reward"]["mean"] == pytest.approx(2 / 12)
    assert project.planned("graders.answer.expect='I guess 0'").endswith("12 re-used, 0 to run.")
    # The configuration it began with is remembered too: nothing of it is played again.
    assert "0 to run" in project.planned()


def test_a_label_that_cannot_be_made_is_ungraded_and_stops_nothing(project: Any) -> None:
    project.run()
    result = project.run("workflow.label='{{ row.solution }}'", "eval.breaker=0")
    assert result.summary["outcomes"]["scored"] == 0
    assert result.summary["reward"]["mean"] is None


def test_a_changed_row_is_played_again_alone(project: Any, rows: Any) -> None:
    project.run()
    changed = rows(6)
    changed[4]["question"] = "four and one?"
    project.write(changed)
    assert project.planned() == (
        "6 rows x 2 attempts: 10 re-used, 2 to run. Re-run because the content of row q4 changed."
    )


def test_failed_rollouts_stay_until_asked_for(project: Any, rows: Any) -> None:
    project.write([*rows(4), BROKEN])
    result = project.run("eval.max_failed=0.1")
    assert result.summary["outcomes"]["failed"] == 2
    assert result.summary["reward"]["n"] == 8
    assert result.too_many_failed and result.exit_code == 3
    assert result.summary["failures"][0]["count"] == 2
    assert result.summary["bounds"]["worst"] < result.summary["reward"]["mean"] < result.summary["bounds"]["best"]
    assert "10 re-used, 0 to run" in project.planned()
    assert project.planned(retry_failed=True) == (
        "5 rows x 2 attempts: 8 re-used, 2 to run. 2 failed before and will be played again."
    )


def test_retries_play_a_failed_rollout_again_and_keep_every_line(project: Any) -> None:
    project.write([BROKEN])
    result = project.run("eval.retries=2", "eval.attempts=1", "eval.max_failed=1.0")
    assert len(project.lines()) == 3
    assert result.summary["rollouts"]["recorded"] == 1


def test_the_breaker_stops_a_run_that_only_fails(project: Any) -> None:
    project.write([{**BROKEN, "id": f"b{n}"} for n in range(200)])
    result = project.run("eval.breaker=5", "eval.concurrency=1")
    assert result.stopped.startswith("the same failure 5 times in a row: model/model_unavailable")
    assert len(project.lines()) == 5
    assert result.exit_code == 3
    assert result.summary["rollouts"]["missing"] == 395


def test_a_token_budget_starts_nothing_that_it_cannot_pay(project: Any, rows: Any) -> None:
    project.write(rows(40))
    whole = project.run("eval.concurrency=1", name="whole").summary["usage"]["total_tokens"]
    budget = whole // 4
    result = project.run(f"eval.budget.tokens={budget}", "eval.concurrency=4")
    spent = result.summary["usage"]["total_tokens"]
    assert "the budget of" in result.stopped
    assert 0.8 * budget < spent < 1.3 * budget
    assert result.exit_code == 3
    again = project.run(f"eval.budget.tokens={budget}")
    assert again.summary["usage"]["total_tokens"] == spent
    assert project.run().summary["complete"] is True


def test_an_interrupted_run_goes_on_where_it_stopped(project: Any, rows: Any) -> None:
    project.write([*rows(5), {"id": "s", "question": "slow", "answer": "x", "hard": False}, *rows(20)[5:]])
    control = Control()

    def stop(standing: Standing) -> None:
        if standing.done >= 10:
            control.interrupt()

    looker = Looker(stop)
    result = project.run("eval.concurrency=3", watcher=looker, control=control, grace=0.05)
    assert result.interrupted and result.exit_code == 130
    assert result.summary["outcomes"]["cancelled"] == 2
    assert result.summary["complete"] is False
    done = {(line["row_id"], line["attempt"]) for line in project.lines() if line["outcome"] == "scored"}
    project.write([{**row, "question": row["question"]} for row in rows(20)])
    project.run()
    scored = [(line["row_id"], line["attempt"]) for line in project.lines() if line["outcome"] == "scored"]
    assert len(scored) == len(set(scored)) == 40
    assert done <= set(scored)


def test_a_second_interrupt_is_told_apart() -> None:
    control = Control()
    assert [control.interrupt(), control.interrupt()] == [True, False]


def test_a_time_budget_starts_nothing_more(project: Any) -> None:
    project.write([{"id": f"s{n}", "question": "slow", "answer": "late", "hard": False} for n in range(9)])
    text = project.file.read_text().replace('delay = "30s"', 'delay = "200ms"')
    project.file.write_text(text)
    result = project.run("eval.concurrency=2", "eval.budget.time='100ms'")
    assert "time budget" in result.stopped
    assert result.summary["outcomes"]["scored"] == 2


def test_fresh_moves_the_old_run_aside(project: Any) -> None:
    project.run()
    project.run(fresh=True)
    folders = sorted(folder.name for folder in (project.folder / "runs").iterdir())
    assert len(folders) == 2 and folders[0] == "sums" and folders[1].startswith("sums.")
    assert len(project.lines(folders[1])) == len(project.lines()) == 12


def test_two_runs_at_once_are_refused(project: Any) -> None:
    project.run()
    with RunFolder(project.folder / "runs" / "sums").lock(), pytest.raises(RunLocked):
        project.run()


def test_a_row_without_a_prompt_fails_alone(project: Any, rows: Any) -> None:
    project.write([*rows(3), {"id": "odd", "answer": "1", "hard": False}])
    result = project.run("eval.max_failed=0.5")
    assert result.summary["outcomes"]["failed"] == 2
    assert result.summary["failures"][0]["boundary"] == "config"
    assert "question" in result.summary["failures"][0]["message"]


def test_an_empty_dataset_is_an_error(project: Any) -> None:
    empty = project.folder / "rows.csv"
    empty.write_text("id,question,answer,hard\n")
    with pytest.raises(DatasetError, match="no record"):
        project.run(f"dataset.path='{empty}'", "dataset.format='csv'")


def test_groups_have_their_own_lines(project: Any) -> None:
    project.run()
    result = project.run("eval.group_by=['kind']")  # asked for later: nothing is played again
    assert len(project.lines()) == 12
    groups = result.summary["groups"]["kind"]
    assert {name: value["rows"] for name, value in groups.items()} == {"k0": 3, "k1": 3}
    assert groups["k0"]["reward"]["n"] == 6


def test_gates_decide_the_exit_code(project: Any) -> None:
    gate = "eval.gates=[{metric='pass@1', bound='lower', min=0.99}, {metric='failed', bound='value', max=0.0}]"
    result = project.run(gate)
    assert [found.passed for found in result.gates] == [False, True]
    assert result.exit_code == 2
    assert "must be at least 0.99" in result.gates[0].text


def test_a_baseline_is_paired_in_the_summary(project: Any) -> None:
    project.run(name="base")
    result = project.run(f"eval.baseline='{project.folder}/runs/base'")
    assert result.summary["baseline"]["difference"] == 0.0
    missing = project.run("eval.baseline='runs/nowhere'")
    assert missing.summary["baseline"]["text"].startswith("not comparable:")


def test_a_killed_run_has_its_summary_all_the_same(project: Any) -> None:
    result = project.run()
    journal = result.folder / "rollouts.jsonl"
    (result.folder / "summary.json").unlink()
    journal.write_bytes(journal.read_bytes()[:-20])  # a torn last line
    past = PastRun.open(result.folder)
    assert past.is_newer_than_summary()
    assert past.summary()["rollouts"] == {"planned": 12, "recorded": 11, "missing": 1}
    assert project.planned().startswith("6 rows x 2 attempts: 11 re-used, 1 to run.")
    project.run()
    keys = [(line["row_id"], line["attempt"]) for line in project.lines()]
    assert len(keys) == len(set(keys)) == 12


def test_the_log_tells_what_went_wrong(project: Any) -> None:
    project.write([BROKEN])
    result = project.run("eval.attempts=1")
    text = (result.folder / "log.txt").read_text()
    assert "start: 1 row x 1 attempt: 1 to run." in text
    assert "b/0 failed: model/model_unavailable" in text


def test_a_record_has_what_its_readers_are_promised(project: Any) -> None:
    project.run()
    record = project.lines()[0]
    assert record["schema"] == "rollout/1"
    assert set(record["digests"]) == {"result", "grade", "config", "grading", "row"}
    assert {"rollout_id", "row", "row_id", "attempt", "outcome", "stop_reason", "reward", "scores", "failure",
            "messages", "calls", "usage", "cost", "timing"} <= set(record)  # fmt: skip


def test_running_is_refused_without_a_dataset(project: Any) -> None:
    text = project.file.read_text().replace('[dataset]\npath = "rows.jsonl"\nid   = "id"\n', "")
    project.file.write_text(text)
    with pytest.raises(DatasetError, match="no dataset"):
        asyncio.run(evaluate(project.plan(), RunOptions(output=Path(project.folder / "runs"))))
