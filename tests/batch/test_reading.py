"""What is made of a finished run: regrade, compare, export, transcripts, the summary in words."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from runner.batch.compare import NotComparable, compare
from runner.batch.compare_text import compare_text
from runner.batch.conclude import side
from runner.batch.export.formats import FORMATS, Count, Selection, export
from runner.batch.figures import Plain, outcome_bar
from runner.batch.gates import Gate, check_gates
from runner.batch.listing import listing_line
from runner.batch.matrix import matrix_table
from runner.batch.past_run import PastRun
from runner.batch.regrade import regrade
from runner.batch.text import summary_text
from runner.batch.transcript import safe, transcript

TOOL_CALL = {"id": "c1", "type": "function", "function": {"name": "quote", "arguments": '{"symbol": "ACME"}'}}
CONVERSATION = [
    {"role": "user", "content": "price of ACME?"},
    {"role": "assistant", "content": None, "tool_calls": [TOOL_CALL], "refusal": None},
    {"role": "tool", "tool_call_id": "c1", "content": "12.5"},
    {"role": "assistant", "content": "12.5", "annotations": []},
]
TOOLS = [{"type": "function", "function": {"name": "quote", "description": "", "parameters": {"type": "object"}}}]


def record(row: int = 0, attempt: int = 0, reward: float | None = 1.0, **changes: Any) -> dict[str, Any]:
    made = {
        "row": row, "row_id": f"r{row}", "attempt": attempt, "outcome": "scored", "stop_reason": "final_answer",
        "reward": reward, "scores": {"answer": {"value": reward, "reason": "equal"}}, "failure": None,
        "messages": CONVERSATION, "label": "12.5", "calls": [], "tools": [], "usage": {}, "timing": {}, "cost": None,
    }  # fmt: skip
    return {**made, **changes}


def rows_of(form: str, *records: dict[str, Any], **selection: Any) -> tuple[list[dict[str, Any]], Count]:
    count = Count()
    return [json.loads(line) for line in export(records, form, TOOLS, Selection(**selection), count)], count


# --- regrade


def test_regrade_supersedes_and_keeps_what_the_policy_did(project: Any) -> None:
    first = project.run()
    before = project.lines()
    plan = project.plan("graders.answer.expect='I guess 0'", "sampling.temperature=0.5")
    result, count = asyncio.run(regrade(plan, first.folder))
    after = project.lines()
    assert after[:12] == before
    assert (count.graded, count.changed, count.kept, count.rowless) == (12, 12, 0, 0)
    assert result.summary["reward"]["mean"] == pytest.approx(2 / 12)
    assert result.exit_code == 0
    assert [line["messages"] for line in after[12:]] != []
    assert result.summary["usage"] == first.summary["usage"]  # the policy was paid once
    # Only the grading is today's: with the old prompt nothing is played again.
    assert "0 to run" in project.planned("graders.answer.expect='I guess 0'")


def test_regrade_leaves_alone_what_is_graded_so_unless_asked(project: Any) -> None:
    first = project.run()
    _, none = asyncio.run(regrade(project.plan(), first.folder))
    assert (none.graded, none.kept) == (0, 12)
    _, everything = asyncio.run(regrade(project.plan(), first.folder, everything=True))
    assert (everything.graded, everything.changed) == (12, 0)


def test_regrade_says_when_the_rows_are_gone(project: Any, rows: Any) -> None:
    first = project.run()
    project.write(rows(3))
    _, count = asyncio.run(regrade(project.plan(), first.folder, everything=True))
    assert (count.graded, count.rowless) == (12, 6)
    assert "gone or has changed" in count.text()


# --- compare


def sides(project: Any, a: str, b: str) -> tuple[Any, Any]:
    folder = project.folder / "runs"
    return side(PastRun.open(folder / a), a), side(PastRun.open(folder / b), b)


def test_compare_pairs_rows_and_names_what_changed(project: Any, rows: Any) -> None:
    project.write(rows(30))
    project.run("eval.attempts=1", name="a")
    worse = project.file.read_text().replace("row.hard and attempt % 2 == 1", "row.hard")
    project.file.write_text(worse)
    project.run("eval.attempts=1", name="b")
    found = compare(*sides(project, "a", "b"))
    assert found.rows == 30
    assert found.reward.estimate.value == pytest.approx(-10 / 30)
    assert found.reward.estimate.high is not None and found.reward.estimate.high < 0
    assert found.lost == [f"q{n}" for n in range(0, 30, 3)]
    assert not found.won
    assert found.flip_p == pytest.approx(2 / 2**10)
    assert [change.key for change in found.changed] == ["model.rules"]
    assert json.loads(json.dumps(found.to_json()))["flips"]["pass_to_fail"] == found.lost
    text = compare_text(found)
    assert "10  pass → fail" in text and "model.rules" in text
    assert max(map(len, text.splitlines())) <= 80


def test_compare_lists_missing_rows_and_never_fills_them_in(project: Any, rows: Any) -> None:
    project.run(name="a")
    project.run("dataset.limit=4", name="b")
    found = compare(*sides(project, "a", "b"))
    assert (found.rows, list(found.only_a), list(found.only_b)) == (4, ["q4", "q5"], [])
    assert "only in A" in compare_text(found)


def test_compare_refuses_other_graders_and_other_rows(project: Any, rows: Any) -> None:
    project.run(name="a")
    project.run("graders.answer.ignore_case=true", name="b")
    with pytest.raises(NotComparable, match=r"the graders differ \(graders.answer.ignore_case\)"):
        compare(*sides(project, "a", "b"))
    assert compare(*sides(project, "a", "b"), force=True).warnings
    changed = rows(6)
    changed[0]["question"] = "0 plus 1?"
    project.write(changed)
    project.run(name="c")
    with pytest.raises(NotComparable, match="differ in the content of row q0"):
        compare(*sides(project, "a", "c"))
    project.write([{**row, "id": "other" + row["id"]} for row in rows(6)])
    project.run(name="d")
    with pytest.raises(NotComparable, match="no row in common"):
        compare(*sides(project, "a", "d"))


# --- export


def test_openai_rows_have_text_arguments_and_only_its_keys() -> None:
    rows, count = rows_of("openai-sft", record())
    assert rows == [{
        "messages": [
            {"role": "user", "content": "price of ACME?"},
            {"role": "assistant", "tool_calls": [TOOL_CALL]},
            {"role": "tool", "content": "12.5", "tool_call_id": "c1"},
            {"role": "assistant", "content": "12.5"},
        ],
        "tools": TOOLS,
        "parallel_tool_calls": False,
    }]  # fmt: skip
    assert count.text() == "1 row"


def test_trl_rows_have_object_arguments_and_tool_names() -> None:
    rows, _ = rows_of("trl-sft", record())
    assert rows[0]["messages"][1:3] == [
        {"role": "assistant", "tool_calls": [
            {"type": "function", "function": {"name": "quote", "arguments": {"symbol": "ACME"}}}]},
        {"role": "tool", "name": "quote", "content": "12.5"},
    ]  # fmt: skip
    assert rows[0]["tools"] == TOOLS


def test_what_is_left_out_is_counted_by_reason() -> None:
    bad_call = {**TOOL_CALL, "function": {"name": "quote", "arguments": "{oops"}}
    garbled = [CONVERSATION[0], {"role": "assistant", "tool_calls": [bad_call]}, *CONVERSATION[2:]]
    records = [
        record(0), record(1, reward=0.2), record(2, reward=None, outcome="failed"),
        record(3, messages=garbled), record(4, messages=CONVERSATION[:2]), record(5, messages=CONVERSATION[:1]),
    ]  # fmt: skip
    rows, count = rows_of("trl-sft", *records, min_reward=0.5)
    assert len(rows) == count.written == 1
    assert count.dropped == {
        "below the least reward": 1, "failed": 1, "a tool call whose arguments are no JSON object": 1,
        "ends with a tool call that nobody answered": 1, "no assistant message": 1,
    }  # fmt: skip


def test_the_best_of_a_row_is_the_first_of_equals() -> None:
    records = [record(0, 0, 0.5), record(0, 1, 1.0), record(0, 2, 1.0), record(1, 0, 0.0)]
    rows, count = rows_of("jsonl", *records, best_per_row=True)
    assert [(row["row_id"], row["attempt"]) for row in rows] == [("r0", 1), ("r1", 0)]
    assert count.dropped == {"not the best of their row": 2}


def test_a_lone_surrogate_leaves_valid_json() -> None:
    messages = [{"role": "user", "content": "\ud800"}, {"role": "assistant", "content": "ok"}]
    rows, _ = rows_of("jsonl", record(messages=messages))
    assert rows[0]["messages"][0]["content"] == "\ud800"


@pytest.mark.parametrize("form", FORMATS)
def test_exporting_again_gives_the_same_bytes(project: Any, form: str) -> None:
    result = project.run()
    one = list(export(PastRun.open(result.folder).in_order(), form, [], Selection(), Count()))
    asyncio.run(regrade(project.plan(), result.folder, everything=True))  # the journal's order is another one now
    two = list(export(PastRun.open(result.folder).in_order(), form, [], Selection(), Count()))
    assert one == two and len(one) == 12


# --- in words


def test_the_summary_fits_a_terminal_and_says_what_it_counts(project: Any, rows: Any) -> None:
    broken = {"id": "b", "question": "broken", "answer": "x", "hard": False, "kind": "k0"}
    project.write([*rows(9), broken])
    result = project.run("eval.group_by=['kind']", "eval.gates=[{metric='reward', min=0.1}]", "eval.breaker=0")
    text = summary_text(result.summary, run="runs/sums")
    assert max(map(len, text.splitlines())) <= 80
    for words in (
        "sums  10 rows × 2 attempts",
        "✓ complete",
        "█ 18 scored   ✗ 2 failed",
        "pass^2",
        "Reward by kind",
        "model/model_unavailable",
        "the lower bound of reward",
        "Reward, pass@k and graders count the 18 scored of 20 rollouts; left out,",
        "osmosis-run show",
    ):
        assert words in text


def test_a_run_without_a_score_says_so(project: Any) -> None:
    project.write([{"id": "b", "question": "broken", "answer": "x"}])
    text = summary_text(project.run().summary)
    assert "No rollout was scored" in text


def test_the_outcome_bar_shows_whatever_happened() -> None:
    bar = outcome_bar({"scored": 100_000, "ungraded": 1, "failed": 0, "cancelled": 0, "missing": 3}, 40, Plain())
    assert (len(bar), bar.count("?"), bar.count("·"), bar.count("✗")) == (40, 1, 1, 0)


def test_a_transcript_reads_from_the_prompt_to_the_scores(project: Any) -> None:
    result = project.run()
    text = transcript(PastRun.open(result.folder).find("q0", 1)[0])
    assert text.splitlines()[0] == "row q0, attempt 1   scored · final_answer · reward 0.000"
    assert text.index("── user") < text.index("0 + 1?") < text.index("I guess 0") < text.index("Scores")


def test_a_transcript_shows_tools_failures_and_no_control_characters() -> None:
    call = {"turn": 0, "latency": 0.81, "usage": {"input_tokens": 3, "output_tokens": 2}, "finish_reason": "tool_calls"}
    failure = {"boundary": "tool", "kind": "tool_crashed", "message": "boom \x1b[2J", "where": "t.py:3 in quote"}
    text = transcript(record(
        reward=None, outcome="failed", failure=failure, calls=[call, {**call, "finish_reason": "stop"}],
        tools=[{"tool_call_id": "c1", "name": "quote", "status": "ok", "seconds": 0.012, "truncated": True}],
    ))  # fmt: skip
    assert '→ quote({"symbol": "ACME"})' in text
    assert "quote · ok · 12 ms · cut" in text
    assert "810 ms · 3 in + 2 out · tool_calls" in text
    assert "Failure  tool/tool_crashed" in text and "at t.py:3 in quote" in text
    assert "\x1b" not in text and "\\x1b[2J" in text


def test_safe_keeps_scripts_and_spells_out_tricks() -> None:
    assert safe("日本　語 👩‍🚀\n\tx") == "日本　語 👩‍🚀\n\tx"
    assert safe("a\u202eb\ud800") == "a\\u202eb\\ud800"


def test_a_listing_line_fits(project: Any) -> None:
    wordy = record(messages=[{"role": "assistant", "content": "long " * 50}])
    failed = record(reward=None, outcome="failed", failure={"message": "x" * 99})
    assert len(listing_line(wordy, True, Plain())) <= 80
    assert len(listing_line(failed, False, Plain())) <= 80


def test_rows_are_found_by_id_or_by_place(project: Any) -> None:
    past = PastRun.open(project.run().folder)
    assert [found["attempt"] for found in past.find("q2")] == [0, 1]
    assert past.find("2", 1)[0]["row_id"] == "q2"
    assert past.find("q9") == []


def test_a_matrix_is_a_table_of_cells(project: Any) -> None:
    results = [project.run(cell=f"t={n}") for n in (0, 1)]
    lines = matrix_table(results).splitlines()
    assert len(lines) == 3 and "t=1" in lines[2] and "83.3 %" in lines[2]
    assert Path(project.folder / "runs" / "sums@t-0").is_dir()


def test_a_gate_over_nothing_does_not_pass(project: Any) -> None:
    summary = project.run().summary
    found = check_gates([Gate("grader.nobody", min=0.0), Gate("speed"), Gate("pass_rate", "lower", 0.1)], summary)
    assert [gate.passed for gate in found] == [False, False, True]


def test_a_transcript_says_how_calls_in_text_went() -> None:
    def span(turn: int, number: int, status: str, **more: Any) -> dict[str, Any]:
        call = {"turn": turn, "tool_call_id": f"call_{turn}_{number}", "name": "quote", "arguments": "{}"}
        return {**call, "status": status, "seconds": 0.25, **more}

    shown = transcript(record(
        messages=[
            {"role": "user", "content": "price?"},
            {"role": "assistant", "content": "<tool_call>1</tool_call><tool_call>2</tool_call>"},
            {"role": "user", "content": "12.5, 13"},
            {"role": "assistant", "content": "<tool_call>3"},
            {"role": "user", "content": "unread"},
            {"role": "assistant", "content": "12.5"},
        ],
        calls=[{"turn": turn, "latency": 0.1, "finish_reason": "stop"} for turn in (1, 2, 3)],
        tools=[span(1, 0, "ok"), span(1, 1, "error", truncated=True), span(2, 0, "bad_call")],
    ))  # fmt: skip
    assert "── user ──" in shown and "price?\n" in shown
    assert "── 2 calls\nquote · ok · 250 ms\nquote · error · 250 ms · cut\n12.5, 13\n" in shown
    assert "── quote · bad_call · 250 ms\nunread\n" in shown
