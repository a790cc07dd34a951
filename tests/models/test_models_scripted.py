"""Scripted answers, recordings and replays."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from runner.models.price import Price, known_price
from runner.models.recording import Recording, RecordingModel
from runner.models.replay import ReplayModel
from runner.models.scripted import Rule, ScriptedCall, ScriptedModel, luck
from runner.records.completion import Caller, Completion, Sampling, ToolSpec, Usage
from runner.records.failure import ContextOverflow, ModelRefused, ModelUnavailable, ReplayMiss

USER = [{"role": "user", "content": "What is 2 + 2?"}]
ROW = {"id": "row-1", "a": 2}


def ask(model: Any, messages: Any = USER, **caller: Any) -> Completion:
    asked = Caller("r", **{"row": ROW, **caller})
    completion: Completion = asyncio.run(model.complete(messages, (), Sampling(), asked))
    return completion


def test_the_first_rule_that_holds_answers() -> None:
    table = ScriptedCall("add", {"a": "{{ row.a }}", "b": 2, "c": ["{{ last }}"]})
    rules = [
        Rule(when="turn == 0 and '2 + 2' in last", tool_calls=(table, ScriptedCall("raw", "{oops")), reasoning="Hm."),
        Rule(reply="#### {{ messages | length }}", finish_reason="length"),
    ]
    model = ScriptedModel(rules, price=Price(1.0, 1.0))
    first = ask(model)
    calls = first.message["tool_calls"]
    assert json.loads(calls[0]["function"]["arguments"]) == {"a": 2, "b": 2, "c": ["What is 2 + 2?"]}
    assert calls[1]["function"]["arguments"] == "{oops"
    assert [call["id"] for call in calls] == ["call_0_0", "call_0_1"]
    assert (first.finish_reason, first.reasoning) == ("tool_calls", "Hm.")
    second = ask(model, [*USER, first.message, {"role": "tool", "content": "4"}])
    assert (second.message, second.finish_reason) == ({"role": "assistant", "content": "#### 3"}, "length")
    assert ask(ScriptedModel([Rule(reply="12345")])).usage == Usage(4, 2)
    assert first.cost == pytest.approx(first.usage.total_tokens / 1e6 if first.usage else 0.0)


def test_errors_and_delays_of_rules(clock: Any) -> None:
    with pytest.raises(ModelUnavailable, match="down for row-1"):
        ask(ScriptedModel([Rule(error="down for {{ row.id }}")]))
    with pytest.raises(ModelRefused, match="no rule of the scripted model answers turn 0 of row 'row-1', attempt 2"):
        ask(ScriptedModel([Rule(when="turn == 9", reply="x")]), attempt=2)
    with pytest.raises(ModelRefused, match="`when` of rule 1 of the scripted model"):
        ask(ScriptedModel([Rule(when="row.nothing > 1", reply="x")]))
    with pytest.raises(ModelRefused, match="rule 1 of the scripted model"):
        ask(ScriptedModel([Rule(reply="{{ row.nothing }}")]))
    assert ask(ScriptedModel([Rule(reply="x", delay=2.5)], clock=clock)).latency == 2.5
    assert clock.slept == [2.5]


def test_luck_is_fixed_and_spread() -> None:
    numbers = [luck({"id": row}, attempt, 0) for row in range(200) for attempt in range(2)]
    assert all(0.0 <= number < 1.0 for number in numbers)
    assert len(set(numbers)) == 400
    assert 0.4 < sum(numbers) / 400 < 0.6
    assert luck({"a": 1, "b": 2}, 0, 1) == luck({"b": 2, "a": 1}, 0, 1)
    assert luck({"id": "x"}, 0, 0) == 0.6283163997711616


def recorded(path: Path, rules: list[Rule] | None = None, attempts: int = 1) -> list[Completion]:
    model = RecordingModel(ScriptedModel(rules or [Rule(reply="{{ luck }}", reasoning="Hm.")]), path)
    answers = [ask(model, attempt=attempt) for attempt in range(attempts)]
    asyncio.run(model.aclose())
    return answers


def test_a_replay_is_exact(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "record.jsonl"
    answers = recorded(path, attempts=3)
    model = ReplayModel(path)
    assert [ask(model, attempt=attempt) for attempt in range(3)] == answers
    assert ask(ReplayModel(path), row={**ROW, "label": "edited"}) == answers[0]


def test_equal_requests_of_one_rollout_are_told_apart(tmp_path: Path) -> None:
    class Counting:
        count = 0

        async def complete(self, *_: Any) -> Completion:
            self.count += 1
            return Completion({"role": "assistant", "content": str(self.count)})

        async def aclose(self) -> None:
            """Nothing is open."""

    recording = Recording(tmp_path / "r.jsonl")
    model = RecordingModel(Counting(), recording)
    for _ in range(3):
        ask(model)
    recording.close()
    replay = ReplayModel(tmp_path / "r.jsonl")
    assert [ask(replay).message["content"] for _ in range(3)] == ["1", "2", "3"]
    with pytest.raises(ReplayMiss, match="was recorded 3 times and is asked once more"):
        ask(replay)


def test_final_errors_are_replayed(tmp_path: Path) -> None:
    class Full:
        async def complete(self, *_: Any) -> Completion:
            raise ContextOverflow("the prompt does not fit")

        async def aclose(self) -> None:
            """Nothing is open."""

    model = RecordingModel(Full(), tmp_path / "r.jsonl")
    with pytest.raises(ContextOverflow):
        ask(model)
    asyncio.run(model.aclose())
    with pytest.raises(ContextOverflow, match="the prompt does not fit"):
        ask(ReplayModel(tmp_path / "r.jsonl"))


def test_a_miss_says_what_differs(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recorded(path)
    model = ReplayModel(path)
    cases: list[tuple[Any, Any, Sampling, dict[str, Any], str]] = [
        ([{"role": "user", "content": "What is 2 + 3?"}], (), Sampling(), {},
         "message 1 (user) differs: recorded 'What is 2 + 2?', asked 'What is 2 + 3?'"),
        ([*USER, *USER], (), Sampling(), {}, "the recorded conversation has 1 messages, this one 2"),
        (USER, (), Sampling(temperature=0.5), {}, "sampling.temperature differs: recorded None, asked 0.5"),
        (USER, (ToolSpec("f", "", {}),), Sampling(), {}, "the tools differ: `f` is new"),
        (USER, (), Sampling(), {"attempt": 4}, "this request was recorded only for attempt 0"),
        (USER, (), Sampling(), {"role": "judge"}, "it has nothing for role `judge` of this row"),
        ([{"role": "user", "content": "x"}], (), Sampling(), {"row": {"id": 9}}, "it has nothing for this row"),
    ]  # fmt: skip
    for messages, tools, sampling, caller, words in cases:
        with pytest.raises(ReplayMiss) as miss:
            asyncio.run(model.complete(messages, tools, sampling, Caller("r", **{"row": ROW, **caller})))
        assert words in str(miss.value)
        assert f"record anew with `osmosis-run eval --record {path}`" in str(miss.value)


def test_a_torn_last_line_is_tolerated_and_mended(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    recorded(path)
    with path.open("ab") as file:
        file.write(b'{"schema":"recording/1","ke')
    assert ask(ReplayModel(path)).reasoning == "Hm."
    recorded(path, attempts=2)
    lines = path.read_bytes().splitlines()
    assert len([json.loads(line) for line in lines]) == 3
    assert ask(ReplayModel(path), attempt=1).reasoning == "Hm."


def test_recordings_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(ReplayMiss, match="there is no recording at"):
        ReplayModel(tmp_path / "none.jsonl")
    with pytest.raises(ReplayMiss, match="cannot be read"):
        ReplayModel(tmp_path)
    for text in ("hello\n", "[]\n", '{"schema": "recording/9"}\n', "{}\n"):
        (tmp_path / "bad.jsonl").write_text(text)
        with pytest.raises(ReplayMiss, match=r"bad.jsonl:1: this is not a"):
            ReplayModel(tmp_path / "bad.jsonl")


def test_prices() -> None:
    usage = Usage(1_000_000, 500_000, cached_tokens=400_000)
    assert Price(2.0, 4.0).cost(usage) == pytest.approx(4.0)
    assert Price(2.0, 4.0, cached=0.5).cost(usage) == pytest.approx(1.2 + 0.2 + 2.0)
    known = known_price("openai/gpt-4o-mini")
    assert known is not None
    assert (known.input, known.output) == (pytest.approx(0.15), pytest.approx(0.6))
    assert known_price("nobody/knows-this") is None
