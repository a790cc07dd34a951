"""Cases about what a controller may ask: status, cancel, health, and what is not there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from runner.models.http1_parser import Answer
from runner.simulate.answered import STATES, cancel_findings, status_findings
from runner.simulate.bench import STALL, Bench, Case, value_of
from runner.simulate.history import History
from runner.simulate.starts import DIALECTS, SINGLE_SAMPLE

_HELD = {"chat": ["chat-stall"] * 20}


async def _status(bench: Bench, history: History) -> str:
    answer = await bench.client.status(history.rollout_id)
    for rule, evidence in status_findings(history, answer.status, answer.body):
        bench.want(False, f"{rule}: {evidence}")
    return str(value_of(answer)["status"])


async def status_true(bench: Bench, dialect: str) -> None:
    history = await bench.start(bench.ask(dialect), script={"chat": ["chat-slow"]})
    during = await _status(bench, history)
    bench.want(during in ("queued", "running", "grading") or history.verdict, f"while it ran its status was {during}")
    await bench.verdict(history)
    await bench.quiet(0.3)
    after = await _status(bench, history)
    assert history.verdict is not None
    bench.want(after == history.verdict.status, f"after {history.verdict.status} its status is {after}")


async def status_unknown(bench: Bench, dialect: str) -> None:
    answer = await bench.client.status(f"never-{bench.ask(dialect).rollout_id}")
    bench.want(answer.status == 200, f"answered {answer.status}")
    bench.want(value_of(answer).get("status") == "unknown", f"an id that never was is {value_of(answer)}")


async def status_odd(bench: Bench, dialect: str) -> None:
    for path in ("a%2Fb", "%00", "..", "%F0%9F%98%80", "x" * 3000):
        answer = await bench.client.send("GET", f"/rollout/{path}/status")
        bench.want(answer.status < 500, f"{path[:20]} was answered {answer.status}")
        if answer.status == 200:
            bench.want(value_of(answer).get("status") in STATES, f"{path[:20]}: {value_of(answer)}")


async def _running(bench: Bench, dialect: str, name: str = "") -> History:
    """A rollout that waits for its model."""
    ask = bench.ask(dialect, rollout_id=name) if name else bench.ask(dialect)
    history = await bench.start(ask, script=_HELD)
    for _ in range(200):
        if history.chats:
            return history
        await asyncio.sleep(0.02)
    bench.want(False, "it asked for no completion within 4 s")
    return history


async def _cancelled(bench: Bench, histories: list[History], answer: Answer, word: str) -> None:
    """The cancel was true: nothing more is heard of them."""
    found, findings = cancel_findings([each.rollout_id for each in histories], answer.status, answer.body)
    bench.want(not findings, f"{findings[:1]}")
    for history in histories:
        came = found[history.rollout_id]
        bench.want(came == word, f"the disposition is {came}, not {word}")
        bench.ledger.cancelled(history, came)
        history.script["chat"] = []  # from now on it would be answered
    await bench.quiet(STALL + 1.0)
    for history in histories:
        heard = [name for name, channel in history.channels.items() if channel.tries]
        bench.want(not heard, f"it was cancelled, and {', '.join(heard)} came")
        state = await _status(bench, history)
        bench.want(state == "cancelled", f"it was cancelled, and its status is {state}")


async def cancel_by_id(bench: Bench, dialect: str) -> None:
    history = await _running(bench, dialect)
    begun = asyncio.get_running_loop().time()
    answer = await bench.client.cancel(ids=[history.rollout_id])
    seconds = asyncio.get_running_loop().time() - begun
    bench.want(seconds < 1.0, f"the cancel took {seconds:.1f} s")
    await _cancelled(bench, [history], answer, "cancelled_running")


async def cancel_by_prefix(bench: Bench, dialect: str) -> None:
    mark = bench.ask(dialect).rollout_id
    histories = [await _running(bench, dialect, f"{mark}-{letter}") for letter in "ab"]
    await _cancelled(bench, histories, await bench.client.cancel(prefix=f"{mark}-"), "cancelled_running")


async def cancel_all(bench: Bench, dialect: str) -> None:
    bench.own_server()
    histories = [await _running(bench, each) for each in DIALECTS]
    await _cancelled(bench, histories, await bench.client.cancel(everything=True), "cancelled_running")


async def cancel_queued(bench: Bench, dialect: str) -> None:
    first = await _running(bench, dialect)
    second = await bench.start(bench.ask(dialect))
    answer = await bench.client.cancel(ids=[second.rollout_id])
    first.script["chat"] = []
    await _cancelled(bench, [second], answer, "cancelled_queued")
    bench.want(second.chats == 0, "a rollout that only waited asked for a completion")
    await bench.verdict(first)


async def cancel_finished(bench: Bench, dialect: str) -> None:
    history = await bench.play(bench.ask(dialect))
    await bench.quiet(0.3)
    names = [history.rollout_id, f"never-{history.rollout_id}"]
    found, findings = cancel_findings(names, *_plain(await bench.client.cancel(ids=names)))
    bench.want(not findings, f"{findings[:1]}")
    bench.want(set(found.values()) == {"not_found"}, f"the dispositions are {found}")
    state = await _status(bench, history)
    bench.want(history.verdict is not None and state == history.verdict.status, f"its status is now {state}")


def _plain(answer: Answer) -> tuple[int, bytes]:
    return answer.status, answer.body


def _refused(body: Any) -> Callable[[Bench, str], Any]:
    async def play(bench: Bench, dialect: str) -> None:
        answer = await bench.client.post("/rollout/cancel", body)
        bench.want(answer.status == 422, f"{body} was answered {answer.status}")

    return play


async def cancel_nothing(bench: Bench, dialect: str) -> None:
    answer = await bench.client.cancel(ids=[])
    bench.want(answer.status == 200, f"answered {answer.status}")
    bench.want(value_of(answer) == {"dispositions": {}}, f"answered {value_of(answer)}")


async def health(bench: Bench, dialect: str) -> None:
    answer = await bench.client.send("GET", "/health", headers={"authorization": ""})
    bench.want(answer.status == 200, f"answered {answer.status}")
    bench.want(value_of(answer).get("status") in ("ok", "healthy"), f"it says {value_of(answer)}")


async def platform_health(bench: Bench, dialect: str) -> None:
    with_key = await bench.client.send("GET", "/platform/health")
    bench.want(with_key.status == 200, f"with the key it was answered {with_key.status}")
    without = await bench.client.send("GET", "/platform/health", headers={"authorization": ""})
    bench.want(without.status == 401, f"without the key it was answered {without.status}")


async def nothing_there(bench: Bench, dialect: str) -> None:
    for method, path, most in (
        ("GET", "/rollout", 405),
        ("POST", "/nowhere", 404),
        ("DELETE", "/v1/rollout/init", 405),
    ):
        answer = await bench.client.send(method, path)
        bench.want(answer.status in (404, 405) and answer.status <= most, f"{method} {path}: {answer.status}")


_ONE = (SINGLE_SAMPLE,)

QUESTIONS: tuple[Case, ...] = (
    Case("status-true", (), "tell the truth about a rollout, during and after", status_true),
    Case("status-unknown", (), "say `unknown` of an id that never was", status_unknown, _ONE),
    Case("status-odd-id", (90,), "answer any id", status_odd, _ONE),
    Case("cancel-id", (16,), "cancel by id within a second, and be silent", cancel_by_id),
    Case("cancel-prefix", (16, 89), "cancel by prefix", cancel_by_prefix, _ONE),
    Case("cancel-all", (16, 89), "cancel everything", cancel_all, _ONE, alone=True),
    Case("cancel-queued", (16,), "cancel what only waits", cancel_queued, DIALECTS,
         ("serve.max_concurrent=1", "serve.max_queue=8"), alone=True),
    Case("cancel-finished", (11, 16), "leave alone what is over", cancel_finished),
    Case("cancel-no-ids", (89,), "do nothing for an empty list", cancel_nothing, _ONE),
    Case("cancel-two-selectors", (), "refuse two selectors", _refused({"ids": ["a"], "all": True}), _ONE),
    Case("cancel-no-selector", (), "refuse a cancel without a selector", _refused({"all": False}), _ONE),
    Case("health", (91,), "tell its health without a key", health, _ONE),
    Case("health-platform", (), "tell its health to the platform, with a key", platform_health, ("agent-loop",),
         needs_key=True),
    Case("paths-unknown", (), "answer 404 or 405 where there is nothing", nothing_there, _ONE),
)  # fmt: skip
