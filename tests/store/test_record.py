"""An outcome survives the journal; what JSON cannot hold is replaced and said."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from runner.records.completion import Usage
from runner.records.failure import Failure
from runner.records.rollout import STATUSES, Outcome, RolloutRequest, Sample, ScoreRecord
from runner.store.record import encode, from_record, to_record

TEXT = st.text(max_size=8)
NUMBER = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=4,
)
OBJECT = st.dictionaries(TEXT, JSON, max_size=2)
FAILURE = st.builds(Failure, st.sampled_from(["model", "tool", "grader"]), TEXT, TEXT, where=TEXT, detail=TEXT)
SCORE = st.builds(ScoreRecord, st.none() | NUMBER, TEXT, st.none() | FAILURE, OBJECT, st.integers(0, 9).map(float))
USAGE = st.builds(Usage, *([st.integers(0, 10**6)] * 4))
MESSAGES = st.lists(st.fixed_dictionaries({"role": TEXT, "content": st.none() | TEXT}), max_size=3).map(tuple)
SAMPLE = st.builds(
    Sample, MESSAGES, st.lists(OBJECT, max_size=2).map(tuple), st.lists(OBJECT, max_size=2).map(tuple), OBJECT
)


@st.composite
def outcomes(draw: st.DrawFn) -> Outcome:
    sample = draw(SAMPLE)
    prompt = draw(st.integers(0, 3).map(lambda count: sample.messages[:count]) | MESSAGES)
    request = RolloutRequest(
        draw(TEXT), prompt, {}, draw(st.integers(0, 10**6)), draw(TEXT), draw(st.integers(0, 99)),
        draw(st.none() | TEXT), draw(OBJECT), draw(OBJECT),
    )  # fmt: skip
    return Outcome(
        request, draw(st.sampled_from(STATUSES)), draw(TEXT), draw(st.none() | NUMBER),
        draw(st.dictionaries(TEXT, SCORE, max_size=2)), draw(st.none() | FAILURE), sample, draw(USAGE),
        draw(st.none() | NUMBER), draw(st.dictionaries(TEXT, NUMBER, max_size=2)),
    )  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(outcomes())
def test_round_trip(outcome: Outcome) -> None:
    line = encode(to_record(outcome, {"result": "a", "grade": "b"}))
    assert line.count(b"\n") == 1
    record = json.loads(line)
    assert "repaired" not in record
    assert from_record(record) == outcome


def plain(**more: Any) -> Outcome:
    prompt = ({"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"})
    sample = Sample(
        (*prompt, {"role": "assistant", "content": "4"}), ({"latency": 0.5},), ({"name": "add"},), {"m": 1.0}
    )
    request = RolloutRequest("r-1", prompt, {"question": "2+2?"}, 7, "seven", 1, "4")
    scores = {"answer": ScoreRecord(1.0, "equal")}
    return Outcome(
        request, "scored", "final_answer", 1.0, scores, None, sample, Usage(10, 2), 0.01, {"total": 0.5}, **more
    )


def test_a_record_has_the_fields_of_the_format() -> None:
    record = to_record(plain(), {"result": "aa", "grade": "bb"})
    assert record == {
        "schema": "rollout/1",
        "rollout_id": "r-1",
        "row": 7,
        "row_id": "seven",
        "attempt": 1,
        "label": "4",
        "outcome": "scored",
        "stop_reason": "final_answer",
        "reward": 1.0,
        "scores": {"answer": {"value": 1.0, "reason": "equal"}},
        "failure": None,
        "usage": {
            "input_tokens": 10,
            "output_tokens": 2,
            "total_tokens": 12,
            "reasoning_tokens": 0,
            "cached_tokens": 0,
        },
        "cost": 0.01,
        "timing": {"total": 0.5},
        "metrics": {"m": 1.0},
        "digests": {"result": "aa", "grade": "bb"},
        "prompt_messages": 2,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "2+2?"},
            {"role": "assistant", "content": "4"},
        ],
        "calls": [{"latency": 0.5}],
        "tools": [{"name": "add"}],
    }


def test_the_row_comes_from_the_dataset() -> None:
    outcome = plain()
    assert from_record(to_record(outcome, {}), outcome.request.row) == outcome


class Rude:
    def __repr__(self) -> str:
        raise ValueError("no")


def test_what_json_cannot_hold_is_replaced_and_said() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    bad = {
        "half": "a\ud800b",
        "nan": float("nan"),
        "inf": [-float("inf")],
        "rude": Rude(),
        "cycle": cycle,
        1: "x",
        "o": object,
    }
    read = json.loads(encode({"schema": "rollout/1", "bad": bad, "pair": "\ud83d\ude00"}))
    assert read["repaired"] is True
    assert read["bad"]["half"] == "a\ufffdb"
    assert read["bad"]["nan"] is None
    assert read["bad"]["inf"] == [None]
    assert read["bad"]["rude"] == "<Rude: its repr raised ValueError>"
    assert read["bad"]["1"] == "x"
    assert read["bad"]["o"] == "<class 'object'>"
    assert read["pair"] == "\U0001f600"


def test_words_that_only_look_like_nan_are_kept() -> None:
    line = encode({"text": "NaN and Infinity"})
    assert json.loads(line) == {"text": "NaN and Infinity"}


def test_deep_nesting_stays_readable(tmp_path: Any) -> None:
    from runner.store.journal_reading import read

    deep: Any = "bottom"
    for _ in range(400):
        deep = [deep]
    middling: Any = "bottom"
    for _ in range(230):
        middling = [middling]
    path = tmp_path / "rollouts.jsonl"
    lines = [encode({"schema": "rollout/1", "deep": each}) for each in (deep, middling)]
    path.write_bytes(b"".join(lines))
    first, second = (record for _, record in read(path))
    assert first["repaired"] is True
    assert "nested too deeply" in json.dumps(first)
    assert ("repaired" in second) or second["deep"] == middling
