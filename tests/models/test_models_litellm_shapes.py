"""litellm's providers against servers that speak their own wire: Anthropic's Messages, Gemini's generateContent.

Shapes: platform.claude.com/docs/en/api/messages and .../errors, ai.google.dev/api/generate-content,
docs.litellm.ai (reasoning content, exception mapping). In one process, as importing litellm takes seconds.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

SCRIPT = """
import asyncio, json, sys, warnings
from runner.models.litellm import LiteLLMModel
from runner.models.retry import Retries, SystemClock
from runner.records.completion import Caller, Sampling, ToolSpec
from runner.records.failure import ModelError
from runner.workflows.turn import resendable

USAGE = {"input_tokens": 100, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 40, "output_tokens": 50}
MESSAGE = {
    "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5-20250929",
    "content": [
        {"type": "thinking", "thinking": "I should add.", "signature": "c2lnbmF0dXJl"},
        {"type": "text", "text": "Let me add."},
        {"type": "tool_use", "id": "toolu_01", "name": "add", "input": {"a": 1}},
    ],
    "stop_reason": "tool_use", "stop_sequence": None, "usage": USAGE,
}
LAST = {**MESSAGE, "content": [{"type": "text", "text": "2"}], "stop_reason": "end_turn"}
GEMINI = {
    "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [
        {"text": "Thinking.", "thought": True},
        {"functionCall": {"name": "add", "args": {"a": 1}}, "thoughtSignature": "c2ln"},
    ]}}],
    "usageMetadata": {
        "promptTokenCount": 10, "candidatesTokenCount": 5, "thoughtsTokenCount": 20, "totalTokenCount": 35,
    },
    "modelVersion": "gemini-2.5-flash", "responseId": "x",
}
BROKEN_OFF = {
    "id": "x", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Th"}, "finish_reason": "error",
                 "error": {"code": 502, "message": "Provider disconnected"}}],
}
THOUGHTS = [{"type": "reasoning.text", "text": "Add.", "signature": "c2ln", "index": 0}]
ROUTED = {
    "id": "gen-1", "object": "chat.completion", "created": 1, "model": "anthropic/claude-sonnet-4.5",
    "choices": [{"index": 0, "finish_reason": "tool_calls", "message": {
        "role": "assistant", "content": None, "reasoning": "Add.", "reasoning_details": THOUGHTS,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{}"}}]}}],
    "usage": {
        "prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 4}, "completion_tokens_details": {"reasoning_tokens": 7},
    },
}
ERRORS = [
    [429, "rate_limit_error", "This request would exceed your organization's rate limit"],
    [400, "invalid_request_error", "prompt is too long: 205000 tokens > 200000 maximum"],
    [400, "invalid_request_error", "messages: roles must alternate"],
    [400, "invalid_request_error", "Output blocked by content filtering policy"],
    [401, "authentication_error", "invalid x-api-key"],
    [403, "permission_error", "not for you"],
    [404, "not_found_error", "model: claude-x"],
    [500, "api_error", "Internal server error"],
    [529, "overloaded_error", "Overloaded"],
    [504, "timeout_error", "Request timed out"],
    [413, "request_too_large", "Request exceeds the maximum size"],
    [400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 9000 + 2000 > 10000, decrease"],
    [400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 90 + 2000 > 1000, decrease"],
    [400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."],
]
REDACTED = [
    {"type": "redacted_thinking", "data": "EmwK"}, {"type": "tool_use", "id": "toolu_01", "name": "add", "input": {}},
]
SEARCHED = [
    {"type": "server_tool_use", "id": "srvtoolu_01", "name": "web_search", "input": {"query": "x"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_01", "content": []},
    {"type": "text", "text": "So it is."},
]
ADD = ToolSpec("add", "Adds.", {"type": "object", "properties": {"a": {"type": "integer"}}})
THINK = {"thinking": {"type": "enabled", "budget_tokens": 1024}}
HI = [{"role": "user", "content": "hi"}]
CLAUDE = "anthropic/claude-sonnet-4-5-20250929"
asked, slept = [], []


class Clock(SystemClock):
    async def sleep(self, seconds):
        slept.append(seconds)


async def serve(status, body):
    async def talk(reader, writer):
        try:
            while True:
                head = await reader.readuntil(b"\\r\\n\\r\\n")
                length = int(head.lower().split(b"content-length:")[1].split(b"\\r\\n")[0])
                asked.append([head.split(b" ")[1].decode(), json.loads(await reader.readexactly(length))])
                data = json.dumps(body).encode()
                wait = "retry-after: 7\\r\\n" if status in (429, 529) else ""
                start = f"HTTP/1.1 {status} X\\r\\ncontent-type: application/json\\r\\n{wait}"
                writer.write(f"{start}content-length: {len(data)}\\r\\n\\r\\n".encode() + data)
                await writer.drain()
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()
    return await asyncio.start_server(talk, "127.0.0.1", 0)


async def complete(status, body, model=CLAUDE, messages=HI, **sampling):
    server = await serve(status, body)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    model = LiteLLMModel(model=model, base_url=url, api_key="hunter2x", retries=Retries(2, 60), clock=Clock())
    try:
        return await model.complete(messages, [ADD], Sampling(max_tokens=2000, **sampling), Caller("r"))
    finally:
        await model.aclose()
        server.close()


async def ask(*words, **more):
    try:
        found = await complete(*words, **more)
    except ModelError as error:
        return {"error": type(error).__name__, "text": str(error), "retries": error.retries}
    usage = found.usage
    return {
        "message": found.message, "finish": found.finish_reason, "reasoning": found.reasoning, "cost": found.cost,
        "usage": [usage.input_tokens, usage.output_tokens, usage.cached_tokens],
        "thought": usage.reasoning_tokens, "id": found.response_id, "extra": dict(found.extra),
    }


async def main():
    found = {"first": await ask(200, MESSAGE, extra=THINK)}
    found["first asked"] = asked[-1]
    answered = [*HI, found["first"]["message"], {"role": "tool", "tool_call_id": "toolu_01", "content": "2"}]
    found["second"] = await ask(200, LAST, messages=answered, extra=THINK)
    found["second asked"] = asked[-1][1]["messages"]
    for status, kind, words in ERRORS:
        slept.clear()
        found[words] = await ask(status, {"type": "error", "error": {"type": kind, "message": words}})
        found[words]["slept"] = list(slept)
    for stop in ("max_tokens", "stop_sequence", "refusal", "model_context_window_exceeded", "pause_turn", "new_word"):
        found[stop] = await ask(200, {**LAST, "stop_reason": stop})
    found["redacted"] = await ask(200, {**MESSAGE, "content": REDACTED})
    counted = {**USAGE, "output_tokens_details": {"thinking_tokens": 33}}
    found["counted"] = await ask(200, {**MESSAGE, "usage": counted})
    found["searched"] = await ask(200, {**LAST, "content": SEARCHED})
    found["seed"] = await ask(200, LAST, seed=3)
    found["dropped"] = await ask(200, LAST, seed=3, extra={"drop_params": True})
    found["gemini"] = await ask(200, GEMINI, model="gemini/gemini-2.5-flash")
    found["gemini asked"] = asked[-1][0]
    router = "openrouter/anthropic/claude-sonnet-4.5"
    found["routed"] = await ask(200, ROUTED, model=router)
    routed = await complete(200, ROUTED, model=router)
    for choice in (False, True):
        again = [*HI, resendable(routed, reasoning=choice), {"role": "tool", "tool_call_id": "c1", "content": "2"}]
        await ask(200, ROUTED, model=router, messages=again)
        found[f"routed asked {choice}"] = asked[-1][1]["messages"][1]
    found["broken off"] = await ask(200, BROKEN_OFF, model="openai/some-router")
    warnings.warn("the user's own warning, of Pydantic even", UserWarning)
    print(json.dumps(found))


with warnings.catch_warnings():
    # As if somebody's own `catch_warnings` ended in another thread meanwhile: our filters are gone.
    from runner.models.litellm import load
    load()
warnings.resetwarnings()
warnings.simplefilter("always")
asyncio.run(main())
"""


@pytest.fixture(scope="module")
def ran() -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "hunter2" not in done.stdout + done.stderr
    return done


@pytest.fixture
def found(ran: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(ran.stdout)
    return values


def test_only_the_users_warnings_are_seen(ran: subprocess.CompletedProcess[str]) -> None:
    shown = [line for line in ran.stderr.splitlines() if "Warning: " in line]
    assert len(shown) == 1, ran.stderr
    assert "the user's own warning" in shown[0]


def test_anthropic_text_thinking_and_tool_use(found: dict[str, Any]) -> None:
    first = found["first"]
    assert (first["reasoning"], first["finish"]) == ("I should add.", "tool_calls")
    message = dict(first["message"])
    [thought] = message.pop("thinking_blocks")
    assert (thought["type"], thought["signature"]) == ("thinking", "c2lnbmF0dXJl")
    call = {"id": "toolu_01", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    assert message == {"role": "assistant", "content": "Let me add.", "tool_calls": [call]}
    assert first["usage"] == [140, 50, 40]  # litellm counts cached tokens into the prompt, as OpenAI does
    assert first["cost"] == pytest.approx((100 * 3 + 40 * 0.3 + 50 * 15) / 1e6)
    path, body = found["first asked"]
    assert path == "/v1/messages"
    assert body["tools"][0]["input_schema"]["properties"] == {"a": {"type": "integer"}}
    assert body["max_tokens"] == 2000


def test_anthropic_gets_its_signed_thought_back_with_the_tool_result(found: dict[str, Any]) -> None:
    _, assistant, result = found["second asked"]
    assert [block["type"] for block in assistant["content"]] == ["thinking", "text", "tool_use"]
    assert assistant["content"][0]["signature"] == "c2lnbmF0dXJl"
    assert result["content"][0]["tool_use_id"] == "toolu_01"
    assert (found["second"]["message"], found["second"]["finish"]) == ({"role": "assistant", "content": "2"}, "stop")


@pytest.mark.parametrize(
    ("words", "becomes", "more"),
    [
        ("This request would exceed your organization's rate limit", "ModelUnavailable", "answered 429: This request"),
        ("prompt is too long: 205000 tokens > 200000 maximum", "ContextOverflow", "the prompt does not fit: prompt is"),
        ("messages: roles must alternate", "ModelRefused", "answered 400: messages: roles"),
        ("Output blocked by content filtering policy", "ModelRefused", "answered 400: Output blocked"),
        ("invalid x-api-key", "ModelRefused", "check the API key"),
        ("not for you", "ModelRefused", "may not use this model"),
        ("model: claude-x", "ModelRefused", "check whether the provider serves `anthropic/claude"),
        ("Internal server error", "ModelUnavailable", "gave up after 2 tries"),
        ("Overloaded", "ModelUnavailable", "answered 529: Overloaded"),
        ("Request timed out", "ModelUnavailable", "answered 504: Request timed out"),
        ("Request exceeds the maximum size", "ModelRefused", "answered 413"),
        ("input length and `max_tokens` exceed context limit: 9000 + 2000 > 10000, decrease", "ContextOverflow", ""),
        (
            "input length and `max_tokens` exceed context limit: 90 + 2000 > 1000, decrease",
            "ModelRefused",
            "`[sampling] max_tokens` is more than the model holds",
        ),
        ("Your credit balance is too low to access the Anthropic API.", "ModelRefused", "has no credit left"),
    ],
)
def test_anthropic_errors(found: dict[str, Any], words: str, becomes: str, more: str) -> None:
    failed = found[words]
    assert failed["error"] == becomes, failed
    assert words in failed["text"]
    assert more in failed["text"]
    assert "{" not in failed["text"]
    assert failed["retries"] == len(failed["slept"]) == (1 if becomes == "ModelUnavailable" else 0)


@pytest.mark.parametrize("words", ["This request would exceed your organization's rate limit", "Overloaded"])
def test_the_providers_retry_after_is_honoured(found: dict[str, Any], words: str) -> None:
    [wait] = found[words]["slept"]
    assert 7.0 <= wait <= 7.7


@pytest.mark.parametrize(
    ("stop", "becomes"),
    [
        ("max_tokens", "length"),
        ("stop_sequence", "stop"),
        ("refusal", "content_filter"),
        ("model_context_window_exceeded", "length"),
        ("new_word", "new_word"),
    ],
)
def test_anthropic_stop_reasons(found: dict[str, Any], stop: str, becomes: str) -> None:
    assert (found[stop]["finish"], found[stop]["id"]) == (becomes, "msg_01")


def test_a_turn_that_the_provider_paused_is_no_answer(found: dict[str, Any]) -> None:
    assert found["pause_turn"]["error"] == "ModelRefused"
    assert "paused its turn" in found["pause_turn"]["text"]


def test_anthropic_thoughts_that_nobody_may_read(found: dict[str, Any]) -> None:
    redacted = found["redacted"]
    assert (redacted["reasoning"], redacted["message"]["content"]) == (None, None)
    assert redacted["message"]["thinking_blocks"] == [{"type": "redacted_thinking", "data": "EmwK"}]
    assert "thinking_blocks" not in json.dumps(redacted["extra"])  # once is enough


def test_thinking_is_counted_by_the_provider_or_not_at_all(found: dict[str, Any]) -> None:
    assert (found["counted"]["thought"], found["first"]["thought"]) == (33, 0)


def test_a_tool_that_the_provider_ran_is_no_call_for_us(found: dict[str, Any]) -> None:
    assert found["searched"]["message"] == {"role": "assistant", "content": "So it is."}


def test_a_parameter_the_provider_does_not_have(found: dict[str, Any]) -> None:
    assert found["seed"]["error"] == "ModelRefused"
    assert "does not support parameters: ['seed']" in found["seed"]["text"]
    assert "drop_params = true" in found["seed"]["text"]
    assert found["dropped"]["message"]["content"] == "2"


def test_reasoning_of_a_router_goes_back_only_where_it_is_wanted(found: dict[str, Any]) -> None:
    routed = found["routed"]
    assert (routed["reasoning"], routed["usage"], routed["thought"]) == ("Add.", [10, 20, 4], 7)
    assert set(routed["message"]) == {"role", "content", "tool_calls"}
    assert set(found["routed asked False"]) == {"role", "tool_calls"}
    wanted = found["routed asked True"]
    assert (wanted["reasoning_content"], wanted["reasoning_details"][0]["signature"]) == ("Add.", "c2ln")


def test_gemini(found: dict[str, Any]) -> None:
    gemini = found["gemini"]
    assert found["gemini asked"] == "/models/gemini-2.5-flash:generateContent"
    assert (gemini["reasoning"], gemini["finish"], gemini["usage"]) == ("Thinking.", "tool_calls", [10, 25, 0])
    [call] = gemini["message"]["tool_calls"]
    assert call["function"] == {"name": "add", "arguments": '{"a": 1}'}
    assert call["provider_specific_fields"] == {"thought_signature": "c2ln"}
    assert "thinking_blocks" not in gemini["message"]  # not signed: nobody wants them back


def test_an_error_that_litellm_would_hide(found: dict[str, Any]) -> None:
    assert found["broken off"]["error"] == "ModelUnavailable"
    assert "Provider disconnected" in found["broken off"]["text"]
