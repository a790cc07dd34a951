"""Each violation is noticed when a server commits it, and none is seen where a server keeps the protocol."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from runner.simulate.answers import Fixed
from runner.simulate.client import Client
from runner.simulate.controller import Controller
from runner.simulate.faults import Faults
from runner.simulate.ledger import Ledger
from runner.simulate.load import Load, LoadOptions
from runner.simulate.result import measured
from runner.simulate.rules import RULES
from runner.simulate.starts import AGENT_LOOP, DIALECTS, MULTI_SAMPLE, SINGLE_SAMPLE, Ask

TOOLS: list[dict[str, Any]] = []


class Row:
    """Asks for one rollout after the other, like `Asking` without a plan."""

    def __init__(self, dialects: tuple[str, ...], extra: dict[str, Any] | None = None) -> None:
        self._dialects = dialects
        self._extra = extra or {}

    def groups(self) -> Any:
        number = 0
        while True:
            dialect = self._dialects[number % len(self._dialects)]
            prompt = ({"role": "user", "content": "Say OK."},)
            chat = f"chat-{number}" if dialect == SINGLE_SAMPLE else ""
            ask = Ask(f"r-{number:04d}", dialect, prompt, "OK", callback_key=f"back-{number}", chat_key=chat)
            yield [replace(ask, extra=self._extra)]
            number += 1


def play(
    server: Any,
    dialects: tuple[str, ...] = DIALECTS,
    *,
    rollouts: int = 3,
    chances: dict[str, float] | None = None,
    extra: dict[str, Any] | None = None,
    patience: float = 5.0,
    **ledger: Any,
) -> tuple[Ledger, dict[str, Any]]:
    """A short load against a fake server: the ledger, and the report as JSON."""

    async def main() -> tuple[Ledger, dict[str, Any]]:
        kept = Ledger(tools=TOOLS, one_conversation=True, **ledger)
        faults = Faults(chances or {})
        async with server, Controller(kept, Fixed("OK."), faults=faults, stall=0.3) as controller:
            client = Client(server.url)
            quiet = 0.6 if "posts-again" in server.wrong else 0.05
            options = LoadOptions(rollouts=rollouts, patience=patience, quiet=quiet)
            load = Load(options, kept, client, controller.url, faults)
            await load.run(Row(dialects, extra))  # type: ignore[arg-type]
            kept.close()
            await client.aclose()
            return kept, measured("fake", dialects, server.url, kept, load, controller).facts

    return asyncio.run(main())


def test_a_server_that_keeps_the_protocol_violates_nothing(fake_server: Any) -> None:
    ledger, facts = play(fake_server(), rollouts=30)
    assert facts["violations"] == []
    assert facts["exit_code"] == 0
    assert facts["outcomes"] == {"scored": 30}
    assert facts["reward"] == {"n": 30, "mean": 1.0}
    assert [facts["by_dialect"][each]["posted"] for each in DIALECTS] == [10, 10, 10]
    assert all(facts["latency"][name]["n"] == 30 for name in ("accept", "first_chat", "verdict"))
    assert all(history.verdict is not None for history in ledger.histories.values())


def test_faults_of_the_controller_are_no_violations_of_the_server(fake_server: Any) -> None:
    chances = {"callback-500": 0.2, "callback-reset": 0.1, "ack-drop": 0.1, "callback-stall": 0.05,
               "ack-html": 0.1, "ack-204": 0.1, "chat-500": 0.2, "chat-reset": 0.1, "start-duplicate": 0.3,
               "start-again": 0.2}  # fmt: skip
    _, facts = play(fake_server(), rollouts=60, chances=chances)
    assert facts["violations"] == []
    assert facts["exit_code"] == 0
    for fault in ("callback-500", "ack-drop", "chat-500"):
        assert facts["faults"][fault] > 0
    assert facts["load"]["start-duplicate"] > 5


WRONGS = [
    # rule, what the server gets wrong, the dialect in which that shows, faults that bring it out
    ("start-5xx", "start-500", MULTI_SAMPLE, {}),
    ("start-status", "start-204", SINGLE_SAMPLE, {}),
    ("start-body", "start-text", SINGLE_SAMPLE, {}),
    ("start-other-id", "other-id", AGENT_LOOP, {}),
    ("duplicate-answer", "other-answer", SINGLE_SAMPLE, {"start-duplicate": 1.0}),
    ("chat-again", "runs-twice", SINGLE_SAMPLE, {"start-duplicate": 1.0}),
    ("retry-after-missing", "full no-retry-after", SINGLE_SAMPLE, {}),
    ("retry-after-garbage", "full bad-retry-after", SINGLE_SAMPLE, {}),
    ("agent-loop-429", "full", AGENT_LOOP, {}),
    ("bearer-missing", "no-bearer", AGENT_LOOP, {}),
    ("bearer-wrong", "bad-key", MULTI_SAMPLE, {}),
    ("bearer-wrong", "bad-chat-key", SINGLE_SAMPLE, {}),
    ("bearer-scheme", "small-bearer", SINGLE_SAMPLE, {}),
    ("redirect-followed", "follows", MULTI_SAMPLE, {"callback-307": 1.0}),
    ("secret-leaked", "leak", AGENT_LOOP, {}),
    ("content-type", "text-callback", SINGLE_SAMPLE, {}),
    ("not-json", "broken", SINGLE_SAMPLE, {}),
    ("not-finite", "nan", AGENT_LOOP, {}),
    ("not-finite", "sample-nan-metric", MULTI_SAMPLE, {}),
    ("lone-surrogate", "surrogate", AGENT_LOOP, {}),
    ("unknown-rollout", "stranger", AGENT_LOOP, {}),
    ("id-mismatch", "mismatch", SINGLE_SAMPLE, {}),
    ("chat-headers", "no-headers", MULTI_SAMPLE, {}),
    ("chat-body-id", "no-chat-id", AGENT_LOOP, {}),
    ("chat-tools", "tools-along", AGENT_LOOP, {}),
    ("chat-parts", "parts", MULTI_SAMPLE, {}),
    ("chat-stream", "no-stream-word", SINGLE_SAMPLE, {}),
    ("chat-after-verdict", "chats-on", SINGLE_SAMPLE, {}),
    ("missing-field", "short", AGENT_LOOP, {}),
    ("missing-field", "short", MULTI_SAMPLE, {}),
    ("null-field", "null", AGENT_LOOP, {}),
    ("status-word", "word", SINGLE_SAMPLE, {}),
    ("category-word", "category", MULTI_SAMPLE, {}),
    ("grader-before-completion", "grade-first", MULTI_SAMPLE, {}),
    ("callback-after-ack", "posts-again", SINGLE_SAMPLE, {}),
    ("contradicting-verdict", "changes-its-mind", AGENT_LOOP, {"callback-500": 0.5}),
    ("contradicting-verdict", "changes-its-mind", MULTI_SAMPLE, {"callback-500": 0.5}),
    ("contradicting-verdict", "sudden-failure", SINGLE_SAMPLE, {}),
    ("changed-duplicate", "other-words", SINGLE_SAMPLE, {"callback-500": 0.5}),
    ("retry-after-ignored", "hasty", SINGLE_SAMPLE, {"callback-429": 0.7}),
    ("no-backoff", "hammers", AGENT_LOOP, {"callback-500": 1.0}),
    ("message-too-long", "long", MULTI_SAMPLE, {}),
    ("silent-failure", "silent", AGENT_LOOP, {}),
    ("silent-failure", "silent", SINGLE_SAMPLE, {}),
    ("sample-missing", "no-sample", MULTI_SAMPLE, {}),
    ("sample-unknown", "other-sample", MULTI_SAMPLE, {}),
    ("sample-without-chat", "no-chat", MULTI_SAMPLE, {}),
    ("sample-key", "sample-key", MULTI_SAMPLE, {}),
    ("sample-shape", "sample-shape", SINGLE_SAMPLE, {}),
    ("reward-missing", "no-reward", SINGLE_SAMPLE, {}),
    ("reward-not-number", "text-reward", AGENT_LOOP, {}),
    ("reward-not-number", "sample-text", MULTI_SAMPLE, {}),
    ("reward-on-failure", "failed-with-reward", SINGLE_SAMPLE, {}),
    ("reward-on-failure", "error-with-reward", AGENT_LOOP, {}),
    ("reward-on-failure", "removed", SINGLE_SAMPLE, {}),
    ("status-shape", "status-short", SINGLE_SAMPLE, {}),
    ("status-contradicts", "status-lies", SINGLE_SAMPLE, {}),
    ("cancel-shape", "cancel-list", SINGLE_SAMPLE, {"cancel": 1.0}),
    ("cancel-untrue", "cancel-lies", SINGLE_SAMPLE, {"cancel": 1.0}),
    ("verdict-missing", "dies", SINGLE_SAMPLE, {}),
    ("verdict-missing", "no-grade", SINGLE_SAMPLE, {}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "wrong", "dialect", "chances"), WRONGS)
def test_a_violation_is_noticed(
    fake_server: Any, rule: str, wrong: str, dialect: str, chances: dict[str, float]
) -> None:
    ledger, facts = play(fake_server(*wrong.split()), (dialect,), rollouts=3, chances=chances, patience=0.45)
    assert rule in ledger.counts, f"seen: {dict(ledger.counts)}"
    found = next(each for each in facts["violations"] if each["rule"] == rule)
    assert found["evidence"][0]["evidence"]
    assert facts["exit_code"] in (2, 3)


def test_a_key_that_was_not_given_may_not_come(fake_server: Any) -> None:
    """The fake sends what the body gives; here the body gives a key, and the controller knows of none."""
    ledger = Ledger()
    ask = Ask("r", SINGLE_SAMPLE, ())

    async def main() -> None:
        history = ledger.expect(ask)
        async with Controller(ledger, Fixed("OK.")) as controller:
            client = Client(controller.url)
            body = b'{"messages":[],"stream":false}'
            await client.send("POST", "/v1/rollouts/r/chat/completions", body, {"authorization": "Bearer x"})
            await client.aclose()
        assert history.chats == 1

    asyncio.run(main())
    assert list(ledger.counts) == ["bearer-unasked"]


def test_announced_tools_must_be_whole() -> None:
    tool = {"type": "function", "function": {"name": "add", "description": "", "parameters": {
        "type": "object", "properties": {"xs": {"type": "array", "items": {"type": "number"}}}}}}  # fmt: skip
    lossy = b'{"rollout_id":"r","tools":[{"type":"function","function":{"name":"add","description":"","parameters":' \
            b'{"type":"object","properties":{"xs":{"type":"array","description":null}}}}}]}'  # fmt: skip
    ledger = Ledger(tools=[tool])
    history = ledger.expect(Ask("r", AGENT_LOOP, ()))
    ledger.answered(history, 202, {}, lossy)
    assert list(ledger.counts) == ["tools-differ"]


def test_silence_after_a_cancel_is_kept_or_noticed(fake_server: Any) -> None:
    now = [0.0]

    class Late(Ledger):
        def now(self) -> float:
            return now[0]

    ledger = Late()
    history = ledger.expect(Ask("r", SINGLE_SAMPLE, ()))
    ledger.cancelled(history, "cancelled_running")
    now[0] = 0.5  # what was on its way may arrive
    ledger.chat(history, {"content-type": "application/json"}, {"messages": [], "stream": True})
    assert not ledger.counts
    now[0] = 2.0
    ledger.chat(history, {"content-type": "application/json"}, {"messages": [], "stream": True})
    body = {"status": "success", "rollout_id": "r", "extra_fields": None, "err_message": None, "err_category": None}
    ledger.callback(history, "completion", body, b"{}")
    assert set(ledger.counts) == {"chat-after-cancel", "callback-after-cancel"}


def test_the_rest_of_the_rules() -> None:
    """What no fake server can show in a short load: refused starts, grades nobody asked for, shapes of chat."""
    ledger = Ledger()
    refused = ledger.expect(Ask("a", SINGLE_SAMPLE, ()))
    ledger.answered(refused, 422, {}, b'{"detail":"no"}')
    body = {"status": "success", "rollout_id": "a", "extra_fields": None, "err_message": None, "err_category": None}
    ledger.callback(refused, "completion", body, b"{}")
    ungraded = ledger.expect(Ask("b", MULTI_SAMPLE, (), graded=False))
    ledger.callback(ungraded, "completion", {**body, "rollout_id": "b"}, b"{}")
    ledger.callback(ungraded, "grader", {**body, "rollout_id": "b", "samples": {}}, b"{}")
    ledger.chat(ungraded, {"content-type": "application/json"}, {"messages": "x", "stream": True})
    metrics = {"rollout_id": "c", "status": "COMPLETED", "final_messages": [], "metrics": 7}
    ledger.callback(ledger.expect(Ask("c", AGENT_LOOP, ())), "completion", metrics, b"{}")
    assert {"start-refused", "callback-never-started", "grader-unasked", "chat-shape", "metric-not-number"} <= set(
        ledger.counts
    )


def test_every_rule_is_shown_to_be_noticed() -> None:
    elsewhere = {"bearer-unasked", "tools-differ", "chat-after-cancel", "callback-after-cancel", "start-refused",
                 "callback-never-started", "grader-unasked", "chat-shape", "metric-not-number"}  # fmt: skip
    by_the_command = {"server-died"}
    shown = {rule for rule, *_ in WRONGS} | elsewhere | by_the_command
    assert shown == set(RULES)


def test_an_unknown_rule_cannot_be_breached() -> None:
    with pytest.raises(KeyError, match="no rule"):
        Ledger().breach("no-such-rule", "", "")
