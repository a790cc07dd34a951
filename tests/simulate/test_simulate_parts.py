"""The parts of the simulation: what is read and asked for, what goes wrong on purpose, what a controller answers."""

from __future__ import annotations

import asyncio
import json
import time
from email.utils import formatdate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.cli.console import Style
from runner.models.http1_parser import Answer
from runner.simulate.answered import cancel_findings, retry_after, start_findings, status_findings
from runner.simulate.answers import Fixed, Raw, failed, spoken
from runner.simulate.callbacks import callback_findings, read_callback
from runner.simulate.client import Client, Unreachable
from runner.simulate.controller import Controller
from runner.simulate.decode import bearer_findings, json_object
from runner.simulate.faults import FAULTS, PROFILES, Faults, Spell, chances_of, parse_fault, parse_spell
from runner.simulate.history import History
from runner.simulate.ledger import Ledger
from runner.simulate.report import report_text, seconds_text
from runner.simulate.result import quantiles
from runner.simulate.rules import RULES
from runner.simulate.starts import AGENT_LOOP, DIALECTS, MULTI_SAMPLE, SINGLE_SAMPLE, Ask

PROMPT = ({"role": "user", "content": "Say OK."},)


def history(dialect: str, **changes: Any) -> History:
    return Ledger().expect(Ask("r-1", dialect, PROMPT, "OK", callback_key="back", chat_key="chat", **changes))


# reading


@given(st.binary(max_size=200))
def test_any_bytes_are_read_as_a_json_object_or_a_finding(body: bytes) -> None:
    value, findings = json_object(body)
    assert (value is None) <= bool(findings)
    assert all(rule in RULES for rule, _ in findings)


def test_what_json_cannot_say_is_named() -> None:
    assert [rule for rule, _ in json_object(b'{"a":NaN}')[1]] == ["not-finite"]
    assert [rule for rule, _ in json_object(b'{"a":"\\ud83d"}')[1]] == ["lone-surrogate"]
    assert [rule for rule, _ in json_object(b"[]")[1]] == ["not-json"]
    assert json_object(b'{"a":"\\ud83d\\ude00"}') == ({"a": "😀"}, [])


@given(st.text(max_size=30))
def test_retry_after_is_always_a_sane_wait(text: str) -> None:
    seconds, findings = retry_after(text)
    assert 0.05 <= seconds <= 60.0
    assert all(rule == "retry-after-garbage" for rule, _ in findings)


def test_retry_after_as_seconds_date_and_nonsense() -> None:
    assert retry_after("2.5") == (2.5, [])
    assert 1.0 < retry_after(formatdate(time.time() + 3, usegmt=True))[0] <= 3.0
    assert retry_after(None)[1][0][0] == "retry-after-missing"
    assert retry_after("-5")[1][0][0] == "retry-after-garbage"
    assert retry_after("1e9") == (60.0, [("retry-after-garbage", "Retry-After: 1e9")])
    assert retry_after("nan")[0] == 1.0


@pytest.mark.parametrize(
    ("header", "key", "rule"),
    [
        ("Bearer k", "k", None), (None, "", None), (None, "k", "bearer-missing"), ("Bearer x", "k", "bearer-wrong"),
        ("bearer k", "k", "bearer-scheme"), ("Bearer  k", "k", "bearer-scheme"), ("Bearer k", "", "bearer-unasked"),
    ],
)  # fmt: skip
def test_bearer_keys_are_compared_as_strict_controllers_do(header: str | None, key: str, rule: str | None) -> None:
    assert [found for found, _ in bearer_findings(header, key)] == ([rule] if rule else [])


@given(st.sampled_from(DIALECTS), st.sampled_from(["completion", "grader"]), st.dictionaries(
    st.sampled_from(["status", "samples", "sample", "reward", "metrics", "final_messages", "err_message"]),
    st.one_of(st.none(), st.floats(), st.text(max_size=5), st.lists(st.integers(), max_size=2),
              st.dictionaries(st.text(max_size=3), st.one_of(st.none(), st.dictionaries(st.sampled_from(
                  ["reward", "metrics", "messages", "id"]), st.one_of(st.none(), st.text(max_size=2), st.floats()))),
                              max_size=2)), max_size=6))  # fmt: skip
def test_any_callback_is_read_and_judged_without_an_error(dialect: str, channel: str, payload: dict[str, Any]) -> None:
    whose = history(dialect)
    if dialect == AGENT_LOOP and channel == "grader":
        return
    assert all(rule in RULES for rule, _ in callback_findings(whose, channel, payload))
    said = read_callback(dialect, channel, payload)
    assert said.reward is None or isinstance(said.reward, float)


def test_answers_to_questions() -> None:
    whose = history(SINGLE_SAMPLE)
    short = list(status_findings(whose, 200, b'{"status":"running"}'))
    assert [rule for rule, _ in short] == ["status-shape"]
    found, wrong = cancel_findings(["a", "b"], 200, b'{"dispositions":{"a":"gone"}}')
    assert found == {"a": "gone"}
    assert [rule for rule, _ in wrong] == ["cancel-shape", "cancel-shape"]
    assert [rule for rule, _ in start_findings(whose, 200, {}, b"{}", None)] == ["start-status"]
    assert not list(start_findings(history(MULTI_SAMPLE), 200, {}, b"{}", None))
    assert not list(start_findings(history(AGENT_LOOP), 503, {}, b"", None))


# starts


def test_starts_are_as_the_protocol_shows_them() -> None:
    base = "http://127.0.0.1:1"
    first = Ask("a", AGENT_LOOP, PROMPT, "8", {"x": 1}, callback_key="k", turns=4).body(base)
    assert first == {
        "rollout_id": "a", "server_url": base, "messages": list(PROMPT), "completion_params": {},
        "metadata": {"x": 1, "ground_truth": "8"}, "api_key": "k", "max_turns": 4,
    }  # fmt: skip
    second = Ask("a", MULTI_SAMPLE, PROMPT, "8", callback_key="k").body(base)
    assert second["chat_completions_url"] == base
    assert second["completion_callback_url"] == base + "/v1/rollout/completed"
    assert "llm_api_key" not in second
    third = Ask("a b/c", SINGLE_SAMPLE, PROMPT, graded=False).body(base)
    assert third["chat_completions_url"] == base + "/v1/rollouts/a%20b%2Fc"
    assert third["grader_callback_url"] is None
    assert third["llm_api_key"] is None
    assert "label" not in Ask("a", SINGLE_SAMPLE, PROMPT, extra={"label": ...}).body(base)


# faults


def test_faults_follow_from_the_seed_alone() -> None:
    chances = {"callback-500": 0.3, "ack-drop": 0.2, "chat-500": 0.5}
    one, two = Faults(chances, 7), Faults(chances, 7)
    drawn = [one.draw("completion", f"r{n}", 1) for n in range(2000)]
    assert drawn == [two.draw("completion", f"r{n}", 1) for n in range(2000)]
    assert 500 < drawn.count("callback-500") < 700
    assert 300 < drawn.count("ack-drop") < 500
    assert drawn != [Faults(chances, 8).draw("completion", f"r{n}", 1) for n in range(2000)]
    assert Faults({}).draw("chat", "r", 1) is None


def test_faults_are_read_from_the_command_line() -> None:
    assert parse_fault("callback-500=0.3") == ("callback-500", 0.3)
    assert chances_of("none", ["chat-slow"]) == {"chat-slow": 1.0}
    assert parse_spell("2@5") == Spell(2.0, 5.0)
    with pytest.raises(ValueError, match="did you mean `callback-500`"):
        parse_fault("callback-5000")
    with pytest.raises(ValueError, match="no probability"):
        parse_fault("chat-500=2")
    with pytest.raises(ValueError, match="more than 1"):
        chances_of("hostile", ["callback-500=0.9"])
    with pytest.raises(ValueError, match="2@5"):
        parse_spell("soon")


def test_profiles_know_only_faults_that_there_are() -> None:
    for chances in PROFILES.values():
        assert set(chances) <= set(FAULTS)
    assert set(PROFILES["hostile"]) | {"callback-404", "callback-307"} == set(FAULTS)


# answers


def test_each_generation_is_answered_in_its_form() -> None:
    asked = {"messages": list(PROMPT), "stream": True, "stream_options": {"include_usage": True}}
    body, kind = spoken(history(AGENT_LOOP), asked, "OK.", token_ids=True)
    first = json.loads(body)
    assert kind == "application/json"
    assert first["id"] == "r-1"
    assert len(first["token_ids"]) == len(first["logprobs"]) == 1
    body, kind = spoken(history(MULTI_SAMPLE), asked, "OK.", token_ids=False)
    assert kind == "text/event-stream"
    assert body.startswith(b": ping\n\n") and body.endswith(b"data: [DONE]\n\n")
    body, _ = spoken(history(SINGLE_SAMPLE), asked, "OK.", token_ids=False)
    chunk = json.loads(body.split(b"data: ")[1])
    assert chunk["choices"][0]["delta"] == {"role": "assistant", "content": "OK."}
    assert chunk["usage"]["total_tokens"] > 0
    plain, kind = spoken(history(SINGLE_SAMPLE), {**asked, "stream": False}, "OK.", token_ids=False)
    assert kind == "application/json" and json.loads(plain)["choices"][0]["message"]["content"] == "OK."
    assert spoken(history(SINGLE_SAMPLE), asked, Raw(b"x"), token_ids=False) == (b"x", "application/json")
    assert failed(False, "no")[0] == 502
    assert b"event: error" in failed(True, "no")[1]


def test_two_steps() -> None:
    two = Fixed("done", ("add", '{"a":1}'))
    call = two.answer(history(AGENT_LOOP), {"messages": list(PROMPT)})
    assert call["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a":1}'}
    assert two.answer(history(AGENT_LOOP), {"messages": [{"role": "tool", "content": "1"}]}) == "done"


# the controller on the wire


def on_the_wire(work: Any, **options: Any) -> tuple[Any, Ledger]:
    async def main() -> tuple[Any, Ledger]:
        ledger = Ledger()
        async with Controller(ledger, Fixed("OK."), stall=0.2, **options) as controller:
            client = Client(controller.url, timeout=3.0)
            try:
                return await work(controller, client, ledger), ledger
            finally:
                await client.aclose()

    return asyncio.run(main())


DONE = {"status": "success", "rollout_id": "r-1", "extra_fields": None, "err_message": None, "err_category": None}
KEY = {"authorization": "Bearer back"}


def test_acknowledgements_are_those_of_the_protocol() -> None:
    async def work(controller: Controller, client: Client, ledger: Ledger) -> list[Answer]:
        third = ledger.expect(Ask("r-1", SINGLE_SAMPLE, PROMPT, callback_key="back", chat_key="chat"))
        third.report = {"samples": {}}
        ledger.expect(Ask("r-2", MULTI_SAMPLE, PROMPT, callback_key="back"))
        ledger.expect(Ask("r-3", AGENT_LOOP, PROMPT, callback_key="back"))
        path, body = "/v1/rollouts/r-1/completion", json.dumps(DONE).encode()
        full = {"rollout_id": "r-3", "status": "COMPLETED", "final_messages": []}
        return [
            await client.send("POST", path, body, KEY),
            await client.send("POST", path, body, {"authorization": "Bearer chat"}),
            await client.send("POST", "/v1/rollouts/nobody/completion", body, KEY),
            await client.send("POST", path, json.dumps({**DONE, "rollout_id": "x"}).encode(), KEY),
            await client.send("POST", "/v1/rollout/completed", json.dumps({**DONE, "rollout_id": "r-2"}).encode(), KEY),
            await client.send("POST", "/v1/rollout/completed", json.dumps(full).encode(), KEY),
            await client.send("POST", "/v1/rollout/completed", b"{", KEY),
            await client.send("POST", "/nowhere", b"{}", KEY),
            await client.send("GET", "/health"),
        ]

    answers, ledger = on_the_wire(work)
    assert [each.status for each in answers] == [200, 401, 404, 422, 200, 200, 200, 404, 200]
    assert json.loads(answers[0].body) == {"ok": True, "trajectory": {"samples": {}}}
    assert json.loads(answers[4].body) == {"status": "ok"}
    # One path, two generations: told apart by the body.
    assert ledger.histories["r-2"].channels["completion"].first is not None
    assert ledger.histories["r-3"].verdict is not None
    assert {"bearer-wrong", "unknown-rollout", "id-mismatch", "not-json"} <= set(ledger.counts)


@pytest.mark.parametrize("fault", [name for name in FAULTS if name.startswith(("callback-", "ack-"))])
def test_each_fault_of_callbacks_is_committed(fault: str) -> None:
    async def work(controller: Controller, client: Client, ledger: Ledger) -> Answer | None:
        ledger.expect(Ask("r-1", SINGLE_SAMPLE, PROMPT, callback_key="back")).script = {"completion": [fault]}
        try:
            return await client.send("POST", "/v1/rollouts/r-1/completion", json.dumps(DONE).encode(), KEY)
        except Unreachable:
            return None

    answer, ledger = on_the_wire(work)
    ends = {"callback-stall": None, "callback-reset": None, "ack-drop": None, "callback-429-date": 429, "ack-204": 204}
    number = fault.rpartition("-")[2]
    expected = ends.get(fault, int(number) if number.isdigit() else 200)
    assert (None if answer is None else answer.status) == expected
    if answer is not None and answer.status == 429:
        assert 0.0 < retry_after(answer.headers["retry-after"])[0] <= 2.0
    # Whatever the answer: it came, and what it said is final.
    assert ledger.histories["r-1"].channels["completion"].first is not None
    acknowledged = ledger.histories["r-1"].channels["completion"].acknowledged is not None
    assert acknowledged == (fault in ("ack-html", "ack-empty", "ack-204"))


@pytest.mark.parametrize("fault", [name for name in FAULTS if name.startswith("chat-")])
def test_each_fault_of_chat_is_committed(fault: str) -> None:
    async def work(controller: Controller, client: Client, ledger: Ledger) -> Answer | None:
        ledger.expect(Ask("r-1", SINGLE_SAMPLE, PROMPT, chat_key="chat")).script = {"chat": [fault]}
        body = json.dumps({"messages": list(PROMPT), "stream": True}).encode()
        try:
            return await client.send(
                "POST", "/v1/rollouts/r-1/chat/completions", body, {"authorization": "Bearer chat"}
            )
        except Unreachable:
            return None

    answer, _ = on_the_wire(work)
    broken = {"chat-stall", "chat-reset", "chat-cut"}
    number = fault.rpartition("-")[2]
    expected = None if fault in broken else int(number) if number.isdigit() else 200
    assert (None if answer is None else answer.status) == expected


def test_a_controller_goes_away_and_comes_back_and_pauses() -> None:
    async def work(controller: Controller, client: Client, ledger: Ledger) -> tuple[bool, int, Answer]:
        ledger.expect(Ask("r-1", SINGLE_SAMPLE, PROMPT, callback_key="back"))
        leaving = asyncio.ensure_future(controller.away(0.2))
        await asyncio.sleep(0.05)
        try:
            await client.send("GET", "/health")
            gone = False
        except Unreachable:
            gone = True
        await leaving
        back = (await client.send("GET", "/health")).status
        controller.pause(0.5)
        return gone, back, await client.send("POST", "/v1/rollouts/r-1/completion", json.dumps(DONE).encode(), KEY)

    (gone, back, paused), _ = on_the_wire(work)
    assert gone
    assert back == 200
    assert paused.status == 429
    assert 0.0 < float(paused.headers["retry-after"]) <= 0.5


# the report


def test_quantiles_and_times() -> None:
    assert quantiles([0.3, 0.1, 0.2]) == {"n": 3, "p50": 0.2, "p90": 0.3, "p99": 0.3, "max": 0.3}
    assert quantiles([])["p50"] is None
    told = [seconds_text(each) for each in (None, 0.0012, 0.85, 12.34, 245.0)]
    assert told == ["–", "1.2 ms", "850 ms", "12.3 s", "4 m 05 s"]


def test_the_report_shows_what_was_broken() -> None:
    spans = {"n": 1, "p50": 0.001, "p90": 0.01, "p99": 0.1, "max": 1.0}
    evidence = {"rule": "contradicting-verdict", "rollout_id": "r-1", "evidence": "first success, then failure"}
    facts = {
        "name": "arithmetic", "server": "http://127.0.0.1:9000", "dialects": [AGENT_LOOP], "interrupted": False,
        "rollouts": {"posted": 2, "accepted": 2, "verdicts": 2, "cancelled": 0, "missing": 0,
                     "unacknowledged": 3}, "notes": ["groups of 2, not 4"], "seconds": 1.5,
        "rollouts_per_second": 1.3, "latency": dict.fromkeys(("accept", "first_chat", "verdict"), spans),
        "outcomes": {"scored": 1, "failure": 1}, "by_dialect": {AGENT_LOOP: {"outcomes": {"scored": 1, "failure": 1}}},
        "reward": {"n": 1, "mean": 0.5}, "failures": [{"message": "the model went away", "count": 1}],
        "requests": {"chat": 4, "callback": 3}, "load": {}, "trouble": "", "faults": {"callback-500": 2},
        "violations": [{"rule": "contradicting-verdict", "trap": 1, "count": 1, "incomplete": False,
                        "says": RULES["contradicting-verdict"].says, "evidence": [evidence]}],
    }  # fmt: skip
    text = report_text(facts, Style(False))
    assert "✗ 1 violation" in text
    assert "  groups of 2, not 4\n  callbacks of 3 rollouts were refused" in text
    assert "contradicting-verdict × 1" in text and "trap 1" in text
    assert "a server must never contradict a verdict that it has sent" in text
    assert "r-1  first success, then failure" in text
    assert max(map(len, text.splitlines())) <= 80
