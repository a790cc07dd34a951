"""What real endpoints answer when they do not answer: which error it becomes, in which words, and how long to wait.

`shapes/errors.json` names for each body where its form is described.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.models.chat import ChatModel
from runner.models.refusal import Refusals, Veil
from runner.models.request import Options
from runner.models.retry import Retries, retry_after
from runner.records.completion import Caller, Completion, Sampling
from runner.records.failure import ModelRefused, ModelUnavailable

SHAPES = Path(__file__).parent / "shapes"
ERRORS: list[dict[str, Any]] = json.loads((SHAPES / "errors.json").read_bytes())
NOW = 1_800_000_000.0
REFUSALS = Refusals("m", "host/v1", Veil([]), "KEY", has_key=True)
ServerOf = Callable[[Any], contextlib.AbstractAsyncContextManager[Any]]


@pytest.mark.parametrize("shape", ERRORS, ids=[error["endpoint"] for error in ERRORS])
def test_an_error_becomes_ours(shape: dict[str, Any]) -> None:
    body = shape["body"] if isinstance(shape["body"], str) else json.dumps(shape["body"])
    wait = retry_after(shape["headers"], NOW, body.encode())
    setback = REFUSALS.from_status(shape["status"], body.encode(), wait)
    assert type(setback.error).__name__ == shape["becomes"], setback
    assert shape["words"] in str(setback.error)
    assert setback.retry == (shape["becomes"] == "ModelUnavailable")
    assert setback.throttled == (shape["becomes"] == "ModelUnavailable" and shape["status"] == 429)
    assert setback.retry_after == (pytest.approx(shape["wait"]) if shape["wait"] is not None else None)
    assert "sk-abc" not in str(setback.error)


@pytest.mark.parametrize(
    ("error", "becomes", "retried"),
    [
        ({"message": "Provider disconnected", "code": "server_error"}, "ModelUnavailable", True),
        ({"message": "too long: context_length_exceeded", "code": 400}, "ContextOverflow", False),
        ({"message": "`inputs` must have less than 9 tokens", "http_status_code": 422}, "ContextOverflow", False),
        ({"message": "bad temperature", "type": "invalid_request_error"}, "ModelRefused", False),
        ({"message": "Rate limit exceeded", "code": "1300"}, "ModelUnavailable", True),
        ("rollout not found", "ModelUnavailable", True),
    ],
)
def test_an_error_inside_a_200(error: Any, becomes: str, retried: bool) -> None:
    setback = REFUSALS.from_error(error)
    assert (type(setback.error).__name__, setback.retry) == (becomes, retried)


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("Please try again in 1m47.5854s. Visit", 107.5854),
        ("Please try again in 20ms.", 0.02),
        ("Please retry after 2 minutes", 120.0),
        ("try again in 1h2m3s", 3723.0),
        ("Please retry shortly", None),
        ("try again in a while", None),
    ],
)
def test_a_wait_in_words(words: str, seconds: float | None) -> None:
    found = retry_after({}, NOW, json.dumps({"error": {"message": words}}).encode())
    assert found == (pytest.approx(seconds) if seconds is not None else None)


def test_what_to_leave_out_after_a_refusal() -> None:
    options = Options(stream=True, token_ids=True)
    said = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    milder = options.milder(said, ids_may_go=True)
    assert milder == (Options(stream=True, token_ids=True, max_tokens_key="max_completion_tokens"), True)
    assert options.milder("body.stream_options: Extra inputs are not permitted", ids_may_go=False) == (
        Options(stream=True, stream_usage=False, token_ids=True),
        True,
    )
    assert options.milder("bad request", ids_may_go=True) == (Options(stream=True), False)
    assert options.milder("bad request", ids_may_go=False) is None


async def ask(url: str, **options: Any) -> Completion:
    model = ChatModel(model="m", base_url=url, retries=Retries(2, 0.01), **options)
    try:
        return await model.complete([{"role": "user", "content": "hi"}], [], Sampling(max_tokens=9), Caller("r"))
    finally:
        await model.aclose()


def served(bodies: list[bytes], head: str) -> Any:
    """A talk that answers each request with the next of `bodies`, and keeps what it was asked."""
    asked: list[dict[str, Any]] = []

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        while True:
            size = int((await reader.readuntil(b"\r\n\r\n")).lower().split(b"content-length:")[1].split(b"\r\n")[0])
            asked.append(json.loads(await reader.readexactly(size)))
            body = bodies[min(len(asked), len(bodies)) - 1]
            status, body = (body[:3], body[4:]) if body[:3].isdigit() else (b"200", body)
            start = f"HTTP/1.1 {status.decode()} X\r\n{head}content-length: {len(body)}\r\n\r\n"
            writer.write(start.encode() + body)
            await writer.drain()

    return talk, asked


@pytest.mark.parametrize("name", ["vllm", "azure", "openai_tools", "deepseek", "openrouter", "gemini_tools", "mistral"])
def test_a_stream_over_a_socket_is_the_answer(raw_server: ServerOf, name: str) -> None:
    async def main() -> tuple[Completion, Completion]:
        both = []
        for suffix, head in ((".sse", "content-type: text/event-stream; charset=utf-8\r\n"), (".json", "")):
            talk, _ = served([(SHAPES / (name + suffix)).read_bytes()], head)
            async with raw_server(talk) as server:
                both.append(await ask(server.url, stream=suffix == ".sse"))
        return both[0], both[1]

    streamed, whole = asyncio.run(main())
    for key in ("message", "finish_reason", "usage", "reasoning", "prompt_token_ids", "token_ids", "logprobs"):
        assert getattr(streamed, key) == getattr(whole, key)
    assert (streamed.model, streamed.response_id) == (whole.model, whole.response_id)


@pytest.mark.parametrize("name", ["openrouter_error_in_200", "openrouter_error_in_choice", "deepseek_broken_off"])
def test_a_200_that_is_no_answer_is_tried_again(raw_server: ServerOf, name: str) -> None:
    bodies = [(SHAPES / f"{name}.json").read_bytes(), (SHAPES / "deepseek.json").read_bytes()]

    async def main() -> Completion:
        talk, _ = served(bodies, "")
        async with raw_server(talk) as server:
            completion = await ask(server.url)
        talk, _ = served(bodies[:1], "")
        async with raw_server(talk) as server:
            with pytest.raises(ModelUnavailable, match="gave up after 2 tries"):
                await ask(server.url)
        return completion

    completion = asyncio.run(main())
    assert (completion.message["content"], completion.retries) == ("9.8", 1)


def test_sglang_that_streams_no_ids_is_asked_without(raw_server: ServerOf) -> None:
    refusal = next(error for error in ERRORS if error["endpoint"] == "SGLang, ids while streaming")
    bodies = [b"400 " + json.dumps(refusal["body"]).encode(), (SHAPES / "vllm_tools.sse").read_bytes()]

    async def main() -> list[dict[str, Any]]:
        talk, asked = served(bodies, "content-type: text/event-stream\r\n")
        async with raw_server(talk) as server:
            model = ChatModel(model="m", base_url=server.url, stream=True)
            for _ in range(2):
                await model.complete([{"role": "user", "content": "hi"}], [], Sampling(), Caller("r"))
            await model.aclose()
        talk, refused = served(bodies, "content-type: text/event-stream\r\n")
        async with raw_server(talk) as server:
            with pytest.raises(ModelRefused, match="not supported with streaming"):
                await ask(server.url, stream=True, return_token_ids=True)
        assert len(refused) == 1
        return asked

    assert [("return_token_ids" in body) for body in asyncio.run(main())] == [True, False, False]
