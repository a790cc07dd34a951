"""`compare` where there is little to compare, and what a run is about when its journal holds more than that."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runner.batch.compare import Comparison, NotComparable, Side, compare
from runner.batch.compare_text import compare_text
from runner.batch.conclude import side
from runner.batch.kept import unchanged
from runner.batch.paired import Difference
from runner.batch.past_run import PastRun
from runner.batch.plan import Digests
from runner.batch.reasons import changes, reason, told
from runner.batch.regrade import regrade
from runner.batch.standing import Nobody, Standing
from runner.batch.tally import Tally


def made(name: str, rewards: dict[str, list[float | None]], threshold: float = 1.0, **facts: Any) -> Side:
    """A run whose rows got these rewards, None for a failed attempt."""
    tally = Tally(threshold)
    for place, (row, attempts) in enumerate(rewards.items()):
        for attempt, reward in enumerate(attempts):
            failed = {"boundary": "model", "kind": "model_unavailable", "message": "down"}
            tally.add({
                "row": place, "row_id": row, "attempt": attempt, "reward": reward, "digests": {"row": row},
                "outcome": "failed" if reward is None else "scored", "stop_reason": "final_answer",
                "scores": {} if reward is None else {"answer": {"value": reward}},
                "failure": failed if reward is None else None,
            })  # fmt: skip
    return Side(name, tally, facts, "")


def mirrored(one: Difference, other: Difference) -> bool:
    a, b = one.estimate, other.estimate
    ends = ((a.value, b.value), (a.low, b.high), (a.high, b.low))
    return all(left == right if left is None or right is None else left == pytest.approx(-right)
               for left, right in ends) and one.p == other.p and a.error == pytest.approx(b.error)  # fmt: skip


A = {f"q{n}": [float(n % 3 == 0), float(n % 2)] for n in range(40)}
B = {f"q{n}": [float(n % 4 == 0) / 2, 1.0, 0.25 * (n % 5)] for n in range(39, 4, -1)}


def test_a_comparison_turned_around_is_its_mirror() -> None:
    one, other = compare(made("a", A), made("b", B)), compare(made("b", B), made("a", A))
    assert mirrored(one.reward, other.reward) and mirrored(one.pass_at_1, other.pass_at_1)
    assert all(mirrored(one.graders[name], other.graders[name]) for name in one.graders)
    assert (set(one.won), set(one.lost)) == (set(other.lost), set(other.won))
    assert one.won and one.lost
    assert one.flip_p == other.flip_p
    assert (list(one.only_a), list(other.only_b)) == ([f"q{n}" for n in range(5)],) * 2
    assert one.means["reward"] == pytest.approx(tuple(reversed(other.means["reward"])))


def test_a_run_compared_with_itself_differs_by_nothing() -> None:
    same = compare(made("a", A), made("b", A))
    for difference in (same.reward, same.pass_at_1, *same.graders.values()):
        assert (difference.estimate.value, difference.p, difference.method) == (0.0, 1.0, "no row differs")
        assert difference.estimate.low is None
    assert not (same.won or same.lost or same.only_a or same.only_b or same.changed)
    assert same.flip_p == 1.0


def shown(found: Comparison) -> str:
    text = compare_text(found)
    assert "nan" not in text.lower()
    return text


def test_one_row_has_a_difference_and_no_interval() -> None:
    found = compare(made("a", {"q": [0.0, 1.0]}), made("b", {"q": [1.0]}))
    assert (found.rows, found.reward.estimate.value, found.reward.estimate.low, found.reward.p) == (1, 0.5, None, 1.0)
    assert "1 row " in shown(found)


def test_a_side_that_only_failed_has_nothing_to_pair() -> None:
    found = compare(made("a", {"q": [1.0], "r": [0.0]}), made("b", {"q": [None], "r": [None]}))
    assert (found.rows, found.reward.estimate.value, found.reward.p) == (0, None, None)
    assert (list(found.only_a), list(found.only_b)) == (["q", "r"], [])
    assert found.means["reward"] == (None, None)
    assert shown(found)


def test_all_rows_moved_alike() -> None:
    found = compare(made("a", {f"q{n}": [0.0] for n in range(9)}), made("b", {f"q{n}": [1.0] for n in range(9)}))
    assert found.reward.estimate.value == 1.0
    assert found.reward.p == pytest.approx(2 / 2**9)
    assert found.flip_p == pytest.approx(2 / 2**9)
    assert shown(found)


def test_every_difference_in_grading_is_named() -> None:
    one = made("a", A, 1.0, grade={"graders.answer.kind": "exact"})
    other = made("b", A, 0.5, grade={"graders.answer.kind": "math"})
    with pytest.raises(NotComparable, match=r"thresholds differ \(1 and 0.5\); the graders differ \("):
        compare(one, other)
    assert len(compare(one, other, force=True).warnings) == 2


# --- true is not 1


def test_a_change_that_python_calls_equal_is_a_change() -> None:
    before, after = {"graders.a.config": {"strict": 1}, "k": 1.0}, {"graders.a.config": {"strict": True}, "k": 1}
    assert Digests.of({"grade": before}) != Digests.of({"grade": after})
    assert [change.key for change in changes(before, after)] == ["graders.a.config", "k"]
    assert unchanged({"graders.a.config": {"strict": 1}}, {"graders.a.config": {"strict": True}}, ["a", "b"]) == {"b"}


# --- what a run is about


def test_a_subset_asked_for_later_is_what_every_command_reads(project: Any) -> None:
    full = project.run(name="full").folder
    part = project.run(name="part").folder
    result = project.run("dataset.rows='1,2'", "eval.attempts=1", name="part")
    past = PastRun.open(part)
    assert past.summary() == {**result.summary}
    assert [(record["row_id"], record["attempt"]) for record in past.in_order()] == [("q1", 0), ("q2", 0)]
    found = compare(side(PastRun.open(full), "full"), side(past, "part"))
    assert (found.rows, list(found.only_a)) == (2, ["q0", "q3", "q4", "q5"])
    again, count = asyncio.run(regrade(project.plan("graders.answer.ignore_case=true"), part))
    assert (count.graded, count.rowless) == (2, 0)
    assert again.summary["rollouts"] == {"planned": 2, "recorded": 2, "missing": 0}
    assert again.summary["complete"] is True
    assert project.run(name="part").summary["rollouts"]["recorded"] == 12
    assert PastRun.open(part).manifest["selection"] is None


def test_a_row_that_changed_does_not_count_before_it_is_played_again(project: Any, rows: Any) -> None:
    project.run()
    changed = rows(6)
    changed[0]["question"] = "zero and one?"
    project.write(changed)

    class Kill(Nobody):
        def began(self, standing: Standing) -> None:
            raise KeyError("killed")

    with pytest.raises(KeyError):
        project.run(watcher=Kill())
    past = PastRun.open(project.folder / "runs" / "sums")
    assert past.is_newer_than_summary()
    assert past.summary()["rollouts"] == {"planned": 12, "recorded": 10, "missing": 2}


def test_groups_asked_for_later_are_there_for_every_reader(project: Any) -> None:
    project.run()
    result = project.run("eval.group_by=['kind', 'hard']")
    assert PastRun.open(result.folder).summary()["groups"] == result.summary["groups"]
    third = project.run("eval.group_by=['kind', 'hard']")
    assert PastRun.open(result.folder).summary()["groups"] == third.summary["groups"] == result.summary["groups"]
    regraded, _ = asyncio.run(regrade(project.plan("graders.answer.ignore_case=true"), result.folder))
    assert regraded.summary["groups"].keys() == {"kind", "hard"}


def test_a_regrade_that_was_killed_is_not_done_and_goes_on(project: Any) -> None:
    run = project.run().folder
    settings = ("graders.answer.expect='I guess 0'",)
    asyncio.run(regrade(project.plan(*settings), run))
    journal = run / "rollouts.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:17]) + lines[17][:40])  # 12 played, 5 graded again, one torn
    summary = PastRun.open(run).summary("killed")
    assert summary["rollouts"] == {"planned": 12, "recorded": 5, "missing": 7}
    assert project.planned(*settings).startswith("6 rows x 2 attempts: 5 re-used, 7 re-graded, 0 to run.")
    result, count = asyncio.run(regrade(project.plan(*settings), run))
    assert (count.graded, count.kept) == (7, 5)
    assert result.summary["rollouts"]["missing"] == 0
    assert result.summary["reward"]["mean"] == pytest.approx(2 / 12)


# --- changes as people are told of them

LONE = {"model.id": "m", "graders.a.kind": "exact", "graders.a.extract": None}
JUDGED = {**LONE, "roles.judge.id": "j", "roles.judge.base_url": None, "roles.judge.sampling.seed": 3}


def test_a_table_that_came_or_went_is_one_change() -> None:
    [came], [went] = told(LONE, JUDGED), told(JUDGED, LONE)
    assert (came.key, came.how, came.before, came.after) == (
        "roles.judge", "added", None, {"id": "j", "sampling.seed": 3},
    )  # fmt: skip
    assert (went.key, went.how, went.before, went.after) == ("roles.judge", "removed", came.after, None)


def test_a_key_without_a_value_is_no_change() -> None:
    assert told(LONE, {**LONE, "graders.a.hint": None}) == []
    assert [change.key for change in told(LONE, {**LONE, "graders.a.hint": None, "graders.a.extract": 1})] == [
        "graders.a.extract"
    ]


def test_keys_of_a_table_that_stays_are_told_each() -> None:
    quoted = {'graders."a.b".kind': "exact"}
    now = {**LONE, "graders.a.kind": "math", "graders.a.tolerance": 0.1, 'graders."a.b".kind': "exact"}
    assert [change.key for change in told({**LONE, **quoted}, now)] == ["graders.a.kind", "graders.a.tolerance"]
    assert [change.key for change in told(LONE, {**LONE, **quoted})] == ['graders."a.b"']


def test_a_reason_and_a_comparison_name_the_table() -> None:
    assert reason(told(LONE, JUDGED), lambda key: f"f:{key}") == "roles.judge was added (f:roles.judge)"
    found = compare(made("a", A, grade=LONE), made("b", A, grade=JUDGED), force=True)
    assert "roles.judge                         added" in compare_text(found)


def test_a_key_that_only_another_version_knows_hinders_no_comparison() -> None:
    one, other = made("a", A, grade=LONE), made("b", A, grade={**LONE, "graders.a.hint": None})
    assert compare(one, other).changed == []
