"""Cases about what is refused: bodies, keys, addresses, sizes, and what happens when it is full."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from runner.simulate.answered import retry_after
from runner.simulate.bench import Bench, Case
from runner.simulate.decode import shown
from runner.simulate.starts import AGENT_LOOP, DIALECTS, MULTI_SAMPLE, SINGLE_SAMPLE, START_PATH

_ROLLOUT = (MULTI_SAMPLE, SINGLE_SAMPLE)
_NEEDED: Mapping[str, tuple[str, ...]] = {
    AGENT_LOOP: ("rollout_id", "server_url", "messages", "completion_params"),
    MULTI_SAMPLE: ("initial_messages", "chat_completions_url", "completion_callback_url"),
    SINGLE_SAMPLE: ("initial_messages", "chat_completions_url", "completion_callback_url"),
}


async def broken_json(bench: Bench, dialect: str) -> None:
    for body in (b"", b"{", b"[]", b'"x"', b"\xff\xfe", b"null", b"[" * 100_000):
        answer = await bench.client.send("POST", START_PATH[dialect], body)
        bench.want(answer.status in (400, 422), f"{shown(body, 30)!r} was answered {answer.status}")


async def missing_fields(bench: Bench, dialect: str) -> None:
    for name in _NEEDED[dialect]:
        await bench.refuses(bench.ask(dialect, extra={name: ...}), 422, why=f"without `{name}`")


async def wrong_types(bench: Bench, dialect: str) -> None:
    messages = "messages" if dialect == AGENT_LOOP else "initial_messages"
    wrong: list[dict[str, Any]] = [{messages: "x"}, {messages: [1]}, {"rollout_id": 7}]
    wrong += [{"metadata": None}, {"completion_params": None}] if dialect == AGENT_LOOP else [{"label": 7}]
    for extra in wrong:
        await bench.refuses(bench.ask(dialect, extra=extra), 422, why=f"{shown(str(extra))}")


async def not_finite(bench: Bench, dialect: str) -> None:
    for word in (b"NaN", b"Infinity"):
        ask = bench.ask(dialect, extra={"agent_timeout_sec": 12345})
        body = ask.encoded(bench.controller.url).replace(b"12345", word)
        answer = await bench.client.send("POST", ask.path, body)
        bench.want(answer.status in (400, 422), f"a timeout of {word.decode()} was answered {answer.status}")


async def callback_address(bench: Bench, dialect: str) -> None:
    key = "server_url" if dialect == AGENT_LOOP else "completion_callback_url"
    for url in ("ftp://127.0.0.1/x", "http://", "no address", "file:///etc/passwd"):
        await bench.refuses(bench.ask(dialect, extra={key: url}), 422, why=f"callbacks to {url}")


async def chat_address(bench: Bench, dialect: str) -> None:
    for url in ("", "ftp://127.0.0.1/x", "http://"):
        ask = bench.ask(dialect, extra={"chat_completions_url": url})
        await bench.refuses(ask, 422, why=f"chat at {url!r}")


async def address_with_query(bench: Bench, dialect: str) -> None:
    for url in (bench.controller.url + "/?a=b", bench.controller.url + "/#c"):
        await bench.refuses(bench.ask(dialect, extra={"server_url": url}), 422, why=f"the server_url {url}")


async def address_with_slash(bench: Bench, dialect: str) -> None:
    await bench.play(bench.ask(dialect, extra={"server_url": bench.controller.url + "//"}))


async def empty_llm_key(bench: Bench, dialect: str) -> None:
    await bench.refuses(bench.ask(dialect, extra={"llm_api_key": ""}), 422, why='llm_api_key ""')


async def huge_metadata(bench: Bench, dialect: str) -> None:
    for text in ("x" * 1_100_000, "字" * 200_000):  # each of these is six signs when escaped
        await bench.refuses(bench.ask(dialect, extra={"metadata": {"x": text}}), 413, 422, why="metadata over 1 MiB")


async def huge_body(bench: Bench, dialect: str) -> None:
    ask = bench.ask(dialect, extra={"padding": "x" * 2_000_000})
    await bench.refuses(ask, 413, why="a body of 2 MB where 1 MiB is allowed")


async def no_key(bench: Bench, dialect: str) -> None:
    for value in ("", "Bearer wrong", "Basic abc", f"Basic {bench.client.key}", f"Bearer {bench.client.key}x"):
        await bench.refuses(bench.ask(dialect), 401, why=f"with {value!r}", headers={"authorization": value})


async def key_first(bench: Bench, dialect: str) -> None:
    answer = await bench.client.send("POST", START_PATH[dialect], b"{", {"authorization": ""})
    bench.want(answer.status == 401, f"a bad body without a key was answered {answer.status}")


async def odd_key(bench: Bench, dialect: str) -> None:
    answer = await bench.client.send("POST", START_PATH[dialect], b"{}", {"authorization": "Bearer schlüssel"})
    bench.want(answer.status == 401, f"a key with an umlaut was answered {answer.status}")


async def key_forms(bench: Bench, dialect: str) -> None:
    for value in (f"bearer {bench.client.key}", f"Bearer    {bench.client.key}", bench.client.key):
        history = bench.expect(bench.ask(dialect))
        bench.ledger.posted(history)
        body = history.ask.encoded(bench.controller.url)
        answer = await bench.client.send("POST", history.ask.path, body, {"authorization": value})
        bench.ledger.answered(history, answer.status, answer.headers, answer.body)
        bench.want(history.accepted, f"a key in the form {value[:8]!r}… was answered {answer.status}")
        await bench.verdict(history)


async def full(bench: Bench, dialect: str) -> None:
    """One plays, one waits; whoever else is refused is told when to come back, and then is played."""
    histories = [bench.expect(bench.ask(dialect), script={"chat": ["chat-slow"]}) for _ in range(6)]
    answers = await asyncio.gather(*(bench.post(history) for history in histories))
    refused = [each for each in answers if each.status in (429, 503)]
    bench.want(len(refused) == 4, f"room for two, and six were answered {sorted(each.status for each in answers)}")
    for answer in refused:
        wait, wrong = retry_after(answer.headers.get("retry-after"))
        bench.want(not wrong and wait <= 60, f"{wrong or wait}")
    for history in histories:
        for _ in range(100):
            if history.accepted:
                break
            await asyncio.sleep(0.3)
            await bench.post(history)
        await bench.verdict(history)


async def past_deadline(bench: Bench, dialect: str) -> None:
    for seconds in (0, -1):
        history = await bench.play(bench.ask(dialect, extra={"agent_timeout_sec": seconds}))
        first = history.channels["completion"].first
        bench.want(first is not None and first.status == "failure", f"a deadline of {seconds} s did not fail it")
        bench.want(first is not None and first.category == "timeout", f"its category is {first and first.category!r}")


async def deadline(bench: Bench, dialect: str) -> None:
    ask = bench.ask(dialect, extra={"agent_timeout_sec": 1})
    history = await bench.play(ask, script={"chat": ["chat-stall"]})
    first = history.channels["completion"].first
    bench.want(first is not None and first.category == "timeout", "an agent past its deadline was no timeout")


_FULL = ("serve.max_concurrent=1", "serve.max_queue=1")

ADMISSION: tuple[Case, ...] = (
    Case("body-no-json", (), "answer what is no JSON object with 422", broken_json),
    Case("body-field-missing", (), "refuse a start that lacks a field", missing_fields),
    Case("body-wrong-type", (), "refuse a start with a field of another type", wrong_types),
    Case("body-timeout-nan", (62,), "refuse a timeout that is no number", not_finite, _ROLLOUT),
    Case("url-callback", (21,), "refuse callback addresses that cannot be posted to", callback_address),
    Case("url-chat", (61,), "refuse chat addresses that cannot be posted to", chat_address, _ROLLOUT),
    Case("url-query", (80,), "refuse a server_url with a query or fragment", address_with_query, (AGENT_LOOP,)),
    Case("url-slash", (80,), "take slashes off the end of server_url", address_with_slash, (AGENT_LOOP,)),
    Case("key-llm-empty", (58,), "refuse an empty llm_api_key", empty_llm_key, (SINGLE_SAMPLE,)),
    Case("size-metadata", (39, 40), "refuse metadata over 1 MiB, escaped", huge_metadata, (AGENT_LOOP,)),
    Case("size-body", (39,), "refuse bodies over its limit", huge_body, DIALECTS, ("serve.max_body=1MiB",)),
    Case("auth-wrong", (57,), "answer 401 without its key", no_key, needs_key=True),
    Case("auth-before-body", (54,), "look at the key before the body", key_first, needs_key=True),
    Case("auth-not-ascii", (55,), "compare keys as bytes", odd_key, needs_key=True),
    Case("auth-forms", (57,), "take its key in any case, and bare", key_forms, needs_key=True),
    Case("full", (69, 70), "refuse what there is no room for, and say when to come back", full, DIALECTS, _FULL,
         alone=True),
    Case("deadline-passed", (63,), "fail a deadline of 0 or less at once", past_deadline, (SINGLE_SAMPLE,)),
    Case("deadline-agent", (64,), "end an agent at its deadline", deadline, (SINGLE_SAMPLE,)),
)  # fmt: skip
