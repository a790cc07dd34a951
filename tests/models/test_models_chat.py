"""`ChatModel` over real sockets: against the double, and against servers that break every rule."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import struct
from email.utils import formatdate
from random import Random
from typing import Any

import pytest

from runner.models.chat import ChatModel, chat_url
from runner.models.double import Double
from runner.models.double_faults import parse_faults
from runner.models.limiter import FixedLimit
from runner.models.price import Price
from runner.models.retry import Retries
from runner.records.completion import Caller, Completion, Sampling, ToolSpec
from runner.records.failure import ContextOverflow, ModelError, ModelGarbled, ModelRefused, ModelUnavailable

USER = [{"role": "user", "content": "What is 2 + 2?"}]
ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
CALLER = Caller("r-1")
QUICK = Retries(attempts=3, max_wait=0.01)


def model_of(base_url: str, **options: Any) -> ChatModel:
    return ChatModel(**{"model": "openai/m", "base_url": base_url, "retries": QUICK, "rng": Random(1), **options})


async def ask(model: ChatModel, sampling: Sampling | None = None) -> Completion:
    return await model.complete(USER, [ADD], sampling or Sampling(), CALLER)


async def failure(model: ChatModel) -> ModelError:
    try:
        with pytest.raises(ModelError) as error:
            await ask(model)
    finally:
        await model.aclose()
    return error.value


# ── the good days ─────────────────────────────────────────────────────────────
@pytest.mark.parametrize("stream", [False, True])
def test_an_answer_with_calls_reasoning_usage_ids_and_price(stream: bool) -> None:
    seen: list[dict[str, Any]] = []

    def respond(request: dict[str, Any]) -> dict[str, Any]:
        seen.append(request)
        calls = [{"function": {"name": "add", "arguments": json.dumps({"a": n})}} for n in (1, 2)]
        return {"content": "I add.", "reasoning_content": "Two calls.", "tool_calls": calls}

    async def play() -> Completion:
        async with Double(respond, token_ids=True) as double:
            model = model_of(double.base_url, stream=stream, price=Price(1.0, 2.0))
            try:
                return await ask(model, Sampling(temperature=0.5, max_tokens=9))
            finally:
                await model.aclose()

    found = asyncio.run(play())
    assert (seen[0]["model"], seen[0]["max_tokens"], seen[0].get("stream", False)) == ("m", 9, stream)
    assert [call["function"]["arguments"] for call in found.message["tool_calls"]] == ['{"a": 1}', '{"a": 2}']
    assert len({call["id"] for call in found.message["tool_calls"]}) == 2
    assert (found.message["content"], found.reasoning, found.finish_reason) == ("I add.", "Two calls.", "tool_calls")
    assert found.usage is not None
    assert found.token_ids is not None
    assert found.prompt_token_ids is not None
    assert len(found.token_ids) == found.usage.output_tokens == len(found.logprobs["content"])
    assert len(found.prompt_token_ids) == found.usage.input_tokens
    assert found.cost == pytest.approx((found.usage.input_tokens + 2 * found.usage.output_tokens) / 1e6)
    assert found.latency > 0.0


def test_many_calls_share_connections_and_respect_the_limit() -> None:
    async def respond(request: dict[str, Any]) -> str:
        await asyncio.sleep(0.002)
        return "ok"

    async def play() -> tuple[dict[str, Any], int]:
        async with Double(respond) as double:
            model = model_of(double.base_url, limiter=FixedLimit(8))
            answers = await asyncio.gather(*[ask(model) for _ in range(100)])
            stats = double.stats()
            await model.aclose()
            return stats, len(answers)

    stats, answered = asyncio.run(play())
    assert answered == 100
    assert stats["max_in_flight"] == 8
    assert stats["connections"] <= 8


def test_every_fault_of_the_double_is_overcome() -> None:
    async def play() -> tuple[list[Completion], dict[str, Any]]:
        faults = parse_faults("429:0.1,500:0.05,reset:0.05,cut:0.05,garbage:0.05,empty:0.05,hang:0.02")
        async with Double(lambda request: "ok", faults=faults, seed=3, retry_after="0") as double:
            model = model_of(double.base_url, retries=Retries(attempts=12, max_wait=0.01), timeout=1.5)
            answers = await asyncio.gather(*[ask(model) for _ in range(200)])
            stats = double.stats()
            await model.aclose()
            return answers, stats

    answers, stats = asyncio.run(play())
    assert [answer.message["content"] for answer in answers] == ["ok"] * 200
    assert {"429", "500", "reset", "cut", "garbage", "empty", "hang"} <= stats["outcomes"].keys()
    # A reset on a kept-alive connection is answered by one silent resend: those are not counted as retries.
    silent = stats["requests"] - 200 - sum(answer.retries for answer in answers)
    assert 0 <= silent <= stats["outcomes"]["reset"]


# ── bodies that arrive in pieces, or not at all ───────────────────────────────
def test_a_chunked_body_in_single_bytes_after_a_100(raw_server: Any) -> None:
    async def talk(reader: Any, writer: Any, number: int) -> None:
        await raw.request(reader)
        body = raw.ok().partition(b"\r\n\r\n")[2]
        middle = len(body) // 2
        chunks = b"".join(b"%X;x=y\r\n%b\r\n" % (len(part), part) for part in (body[:middle], body[middle:]))
        head = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        for byte in head + chunks + b"0\r\nX-Trailer: 1\r\n\r\n":
            writer.write(bytes([byte]))
            await asyncio.sleep(0)
        await reader.read()

    async def play() -> Any:
        nonlocal raw
        async with raw_server(talk) as raw:
            model = model_of(raw.url)
            answer = await ask(model)
            await model.aclose()
            return answer

    raw: Any = None
    assert asyncio.run(play()).message["content"] == "fine"


def play_raw(raw_server: Any, script: Any, **options: Any) -> tuple[Any, int]:
    """Run one call against `script(raw, reader, writer, number)`; the answer or the error, and the connections."""

    async def play() -> tuple[Any, int]:
        async def talk(reader: Any, writer: Any, number: int) -> None:
            await script(raw, reader, writer, number)

        async with raw_server(talk) as raw:
            model = model_of(raw.url, **options)
            try:
                found: Any = await ask(model)
            except ModelError as error:
                found = error
            await model.aclose()
            return found, raw.connections

    return asyncio.run(play())


def test_a_body_that_ends_with_the_connection(raw_server: Any) -> None:
    async def script(raw: Any, reader: Any, writer: Any, number: int) -> None:
        await raw.request(reader)
        writer.write(b"HTTP/1.0 200 OK\r\n\r\n" + raw.ok("to the end").partition(b"\r\n\r\n")[2])

    found, connections = play_raw(raw_server, script)
    assert (found.message["content"], found.retries, connections) == ("to the end", 0, 1)


def test_a_reset_in_the_middle_of_the_body_is_retried(raw_server: Any) -> None:
    async def script(raw: Any, reader: Any, writer: Any, number: int) -> None:
        await raw.request(reader)
        writer.write(raw.ok()[:-10] if number == 0 else raw.ok("second"))
        await writer.drain()
        if number == 0:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        else:
            await reader.read()

    found, connections = play_raw(raw_server, script)
    assert (found.message["content"], found.retries, connections) == ("second", 1, 2)


def test_a_hang_ends_with_the_timeout_and_says_how_often_it_was_tried(raw_server: Any) -> None:
    async def script(raw: Any, reader: Any, writer: Any, number: int) -> None:
        await reader.read()

    found, connections = play_raw(raw_server, script, timeout=0.05)
    assert isinstance(found, ModelUnavailable)
    assert found.retries == 2
    assert connections == 3
    assert str(found).startswith("no answer within 0.05 s (127.0.0.1:")
    assert str(found).endswith("; gave up after 3 tries")


def test_a_kept_alive_connection_that_was_closed_costs_no_try(raw_server: Any) -> None:
    async def play() -> tuple[list[Completion], int]:
        async def talk(reader: Any, writer: Any, number: int) -> None:
            await raw.request(reader)
            writer.write(raw.ok())
            await writer.drain()
            if number == 0:
                await raw.request(reader)  # read the second request, then leave without a byte of an answer
            else:
                await reader.read()

        async with raw_server(talk) as raw:
            model = model_of(raw.url, retries=Retries(attempts=1))
            answers = [await ask(model), await ask(model)]
            await model.aclose()
            return answers, raw.connections

    answers, connections = asyncio.run(play())
    assert [answer.retries for answer in answers] == [0, 0]
    assert connections == 2


def test_no_request_is_sent_twice_once_an_answer_began(raw_server: Any) -> None:
    async def script(raw: Any, reader: Any, writer: Any, number: int) -> None:
        await raw.request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\n")

    found, connections = play_raw(raw_server, script, retries=Retries(attempts=1))
    assert isinstance(found, ModelUnavailable)
    assert connections == 1
    assert "closed in the middle of the answer" in str(found)


def test_an_oversized_answer_is_not_read(raw_server: Any) -> None:
    async def script(raw: Any, reader: Any, writer: Any, number: int) -> None:
        await raw.request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5000000\r\n\r\n")
        await reader.read()

    found, connections = play_raw(raw_server, script, max_answer=1024 * 1024)
    assert isinstance(found, ModelGarbled)
    assert connections == 1
    assert "the answer is larger than 1 MiB" in str(found)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"SSH-2.0-OpenSSH\r\n\r\n", "the answer is not HTTP/1.1"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", "Content-Length is not a number"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n", "a chunk has no size"),
        (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n", "encoded as 'gzip'"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "no JSON"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\n<html>", "an HTML page"),
        (b'HTTP/1.1 200 OK\r\ncontent-length: 14\r\n\r\n{"choices":[]}', "no choice"),
        (b'HTTP/1.1 200 OK\r\ncontent-length: 25\r\n\r\n{"error":{"message":"x"}}', "error 500: x"),
    ],
)
def test_garbage_is_tried_again_and_then_named(raw_server: Any, data: bytes, words: str) -> None:
    async def script(raw: Any, reader: Any, writer: Any, number: int) -> None:
        while True:
            await raw.request(reader)
            writer.write(data)

    found, connections = play_raw(raw_server, script, timeout=5.0)
    assert isinstance(found, (ModelGarbled, ModelUnavailable))
    assert words in str(found)
    assert "gave up after 3 tries" in str(found)
    assert connections >= 1


# ── statuses ──────────────────────────────────────────────────────────────────
def status_script(status: int, body: Any, headers: str = "", then_ok: bool = False) -> Any:
    async def script(raw: Any, reader: Any, writer: Any, number: int) -> None:
        for turn in range(9):
            await raw.request(reader)
            writer.write(raw.ok() if then_ok and turn else raw.http(status, body, headers))

    return script


def test_retry_after_as_seconds_and_as_a_date(raw_server: Any, clock: Any) -> None:
    error = {"error": {"message": "slow down"}}
    for header, expected in (("7", 7.0), ("date", 30.0), ("500", 60.0), ("soon", None)):
        header = formatdate(clock.time() + 30, usegmt=True) if header == "date" else header  # noqa: PLW2901
        script = status_script(429, error, f"Retry-After: {header}\r\n", then_ok=True)
        clock.slept.clear()
        found, _ = play_raw(raw_server, script, clock=clock, retries=Retries(3, 60.0))
        assert found.retries == 1
        (slept,) = clock.slept
        if expected is None:
            assert 0.0 <= slept <= 0.5
        else:
            assert expected - 1.0 <= slept <= min(60.0, expected * 1.1)


def test_a_bad_key_names_its_variable_and_not_its_value(raw_server: Any) -> None:
    body = {"error": {"message": "Incorrect API key provided: hunter2-secret. Or was it sk-abc123def456?"}}
    found, connections = play_raw(
        raw_server,
        status_script(401, body),
        api_key="hunter2-secret",
        key_name="MY_KEY",
        headers={"X-Org": "orgsecret"},
    )
    assert isinstance(found, ModelRefused)
    assert (found.status, connections) == (401, 1)
    text = str(found)
    assert text.startswith("answered 401: Incorrect API key provided: ….")
    assert "check the key in MY_KEY (127.0.0.1:" in text and text.endswith("/v1/chat/completions)")
    assert "hunter2" not in text
    assert "sk-abc" not in text


@pytest.mark.parametrize(
    ("status", "body", "kind", "words"),
    [
        (401, {"error": "no"}, ModelRefused, "no key was sent"),
        (404, {"error": {"message": "no model m"}}, ModelRefused, 'write id = "openai/openai/m"'),
        (403, b"<html>Forbidden</html>", ModelRefused, "may not use this model"),
        (307, b"", ModelRefused, "write that address in `base_url`"),
        (400, {"error": {"message": "bad temperature", "code": "invalid"}}, ModelRefused, "bad temperature [invalid]"),
        (429, {"error": {"message": "x", "code": "insufficient_quota"}}, ModelRefused, "no credit left"),
        (503, {"detail": "warming up"}, ModelUnavailable, "answered 503: warming up (127.0.0.1:"),
        (408, b"", ModelUnavailable, "answered 408: (empty)"),
    ],
)
def test_statuses(raw_server: Any, status: int, body: Any, kind: type[ModelError], words: str) -> None:
    found, _ = play_raw(raw_server, status_script(status, body))
    assert type(found) is kind
    assert found.status == status
    assert words in str(found)


OVERFLOWS = [
    (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 8192 tokens.",
                "code": "context_length_exceeded",
            }
        },
    ),
    (400, {"error": {"message": "Your input exceeds the context window of this model."}}),
    (
        400,
        {"object": "error", "message": "The decoder prompt (length 9) is longer than the maximum model length of 8."},
    ),
    (400, {"error": {"message": "max_tokens must be at least 1, got -5."}}),
    (400, {"message": "The input (9 tokens) is longer than the model's context length (8 tokens)."}),
    (400, {"error": {"message": "prompt is too long: 210000 tokens > 200000 maximum"}}),
    (400, {"error": {"message": "input length and `max_tokens` exceed context limit: 199000 + 2000 > 200000"}}),
    (
        400,
        {"error": {"message": "the request exceeds the available context size", "type": "exceed_context_size_error"}},
    ),
    (413, {"error": {"message": "Please reduce the length of the messages or completion."}}),
    (200, {"error": {"message": "maximum context length is 5", "code": 400}}),
]


@pytest.mark.parametrize(("status", "body"), OVERFLOWS)
def test_a_prompt_that_does_not_fit(raw_server: Any, status: int, body: Any) -> None:
    found, connections = play_raw(raw_server, status_script(status, body), return_token_ids=False)
    assert type(found) is ContextOverflow
    assert connections == 1


def test_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    found = asyncio.run(failure(model_of(f"http://user:password@127.0.0.1:{port}/v1")))
    assert isinstance(found, ModelUnavailable)
    assert str(found).startswith("nothing listens there")
    assert f"(127.0.0.1:{port}/v1/chat/completions)" in str(found)
    assert "password" not in str(found)
    unknown = asyncio.run(failure(model_of("http://no-such-host.invalid/v1")))
    assert "the name of the host is not known" in str(unknown)


# ── token ids ─────────────────────────────────────────────────────────────────
def test_auto_remembers_a_refusal_and_true_does_not(raw_server: Any) -> None:
    async def play(body: Any, **options: Any) -> tuple[list[bool], list[Any]]:
        asked: list[bool] = []

        async def talk(reader: Any, writer: Any, number: int) -> None:
            while True:
                request = await raw.request(reader)
                asked.append("return_token_ids" in request)
                writer.write(raw.http(400, body) if asked[-1] else raw.ok())

        async with raw_server(talk) as raw:
            model = model_of(raw.url, **options)
            found: list[Any] = []
            for _ in range(3):
                try:
                    found.append(await ask(model))
                except ModelError as error:
                    found.append(error)
            await model.aclose()
            return asked, found

    for body in ({"error": {"message": "unknown field return_token_ids"}}, {"error": {"message": "extra fields"}}):
        asked, found = asyncio.run(play(body))
        assert asked == [True, False, False, False]
        assert all(isinstance(answer, Completion) for answer in found)
    asked, found = asyncio.run(play({"error": {"message": "extra fields"}}, return_token_ids=True))
    assert asked == [True, True, True]
    assert all(isinstance(error, ModelRefused) for error in found)


def test_a_request_that_is_bad_anyway_does_not_switch_ids_off(raw_server: Any) -> None:
    asked: list[bool] = []

    async def script(raw: Any, reader: Any, writer: Any, number: int) -> None:
        while True:
            asked.append("return_token_ids" in await raw.request(reader))
            writer.write(raw.http(400, {"error": {"message": "bad temperature"}}))

    found, _ = play_raw(raw_server, script)
    assert isinstance(found, ModelRefused)
    assert "bad temperature" in str(found)
    assert asked == [True, False]


# ── streams ───────────────────────────────────────────────────────────────────
def stream_script(*events: bytes, end: bytes = b"data: [DONE]\n\n", linger: bool = False) -> Any:
    async def script(raw: Any, reader: Any, writer: Any, number: int) -> None:
        await raw.request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\r\n")
        for event in events:
            writer.write(b"data: " + event + b"\r\n\r\n: ping\r\n\r\n")
            await writer.drain()
        writer.write(end)
        await writer.drain()
        if linger:
            await reader.read()

    return script


def piece(**delta: Any) -> bytes:
    finish = delta.pop("finish", None)
    return json.dumps({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).encode()


def test_a_stream_with_usage_after_the_end_of_the_text(raw_server: Any) -> None:
    usage = json.dumps({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}).encode()
    script = stream_script(piece(role="assistant", content="a"), piece(content="é", finish="stop"), usage)
    found, _ = play_raw(raw_server, script, stream=True)
    assert found.message == {"role": "assistant", "content": "aé"}
    assert found.usage.total_tokens == 5


def test_a_stream_whose_connection_stays_open_after_done(raw_server: Any) -> None:
    script = stream_script(piece(content="a", finish="stop"), linger=True)
    found, _ = play_raw(raw_server, script, stream=True, timeout=5.0)
    assert found.message["content"] == "a"


@pytest.mark.parametrize(
    ("events", "end", "words"),
    [
        ([piece(content="a")], b"", "the stream ended before the answer was finished"),
        ([piece(content="a"), b"{oops"], b"data: [DONE]\n\n", "no JSON"),
        ([piece(content="a"), b'{"error": {"message": "boom", "code": 500}}'], b"", "error 500: boom"),
        ([], b"data: [DONE]\n\n", "no choice"),
    ],
)
def test_a_stream_that_breaks_is_tried_again(raw_server: Any, events: list[bytes], end: bytes, words: str) -> None:
    found, connections = play_raw(raw_server, stream_script(*events, end=end), stream=True)
    assert isinstance(found, (ModelGarbled, ModelUnavailable))
    assert words in str(found)
    assert connections == 3


def test_an_endpoint_that_ignores_stream_is_understood(raw_server: Any) -> None:
    async def script(raw: Any, reader: Any, writer: Any, number: int) -> None:
        await raw.request(reader)
        writer.write(raw.ok("whole"))
        await reader.read()

    found, _ = play_raw(raw_server, script, stream=True)
    assert found.message["content"] == "whole"


# ── leaving ───────────────────────────────────────────────────────────────────
def test_cancelling_closes_the_connection_and_frees_the_slot() -> None:
    async def respond(request: dict[str, Any]) -> str:
        await asyncio.sleep(60)
        return "never"

    async def play() -> None:
        async with Double(respond) as double:
            limiter = FixedLimit(1)
            model = model_of(double.base_url, limiter=limiter)
            calls = [asyncio.create_task(ask(model)) for _ in range(3)]
            while double.in_flight < 1:  # noqa: ASYNC110 (the double has no event for it)
                await asyncio.sleep(0.001)
            for call in calls:
                call.cancel()
            results = await asyncio.gather(*calls, return_exceptions=True)
            assert all(isinstance(result, asyncio.CancelledError) for result in results)
            assert (limiter.active, limiter.waiting) == (0, 0)
            while double.in_flight:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            assert double.stats()["connections"] == 0
            await model.aclose()

    asyncio.run(play())
    gc.collect()  # a socket left open would warn here, and warnings are errors


def test_a_cancelled_call_never_harms_its_neighbours() -> None:
    async def play() -> int:
        async with Double(lambda request: "ok", latency=0.002) as double:
            model = model_of(double.base_url)
            rng, answered = Random(5), 0
            for _ in range(10):
                calls = [asyncio.create_task(ask(model)) for _ in range(20)]
                await asyncio.sleep(rng.random() * 0.006)
                for call in calls[::2]:
                    call.cancel()
                results = await asyncio.gather(*calls, return_exceptions=True)
                assert all(isinstance(result, Completion) and result.retries == 0 for result in results[1::2])
                answered += 10
            await model.aclose()
            return answered

    assert asyncio.run(play()) == 100


def test_a_header_that_http_cannot_carry_is_refused() -> None:
    found = asyncio.run(failure(model_of("http://127.0.0.1:9/v1", api_key="kéy", key_name="MY_KEY")))
    assert isinstance(found, ModelRefused)
    assert "the header `authorization` (from MY_KEY) holds a character that HTTP cannot carry" in str(found)


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("http://h:1/v1", "http://h:1/v1/chat/completions"),
        ("http://h:1/v1/", "http://h:1/v1/chat/completions"),
        ("https://h/v1/chat/completions", "https://h/v1/chat/completions"),
        ("https://h/x?api-version=2", "https://h/x/chat/completions?api-version=2"),
    ],
)
def test_the_address_of_chat_completions(base_url: str, url: str) -> None:
    assert chat_url(base_url) == url
