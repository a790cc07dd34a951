"""Bodies out, answers in."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.models.request import Options, max_tokens_key, request_body
from runner.models.wire import parse_answer, parse_json
from runner.records.completion import Completion, Sampling, ToolSpec, Usage
from runner.records.failure import ModelGarbled, ModelRefused

USER = [{"role": "user", "content": "hi"}]


def sent(sampling: Sampling, options: Options | None = None, tools: tuple[ToolSpec, ...] = ()) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(request_body("m", USER, tools, sampling, options or Options()))
    return body


def test_only_what_is_set_is_sent() -> None:
    assert sent(Sampling()) == {"model": "m", "messages": USER}
    full = Sampling(0.5, 0.9, 7, ("a",), 3, {"top_k": 4, "temperature": 0.1})
    assert sent(full, Options(max_tokens_key="max_completion_tokens")) == {
        "model": "m", "messages": USER, "temperature": 0.1, "top_p": 0.9, "max_completion_tokens": 7, "stop": ["a"],
        "seed": 3, "top_k": 4,
    }  # fmt: skip
    streamed = sent(Sampling(), Options(stream=True, token_ids=True), (ToolSpec("f", "d", {"type": "object"}),))
    assert streamed["stream_options"] == {"include_usage": True}
    assert streamed["return_token_ids"] is True
    assert streamed["logprobs"] is True
    assert streamed["tools"][0]["function"] == {"name": "f", "description": "d", "parameters": {"type": "object"}}


def test_the_body_is_compact() -> None:
    assert (
        request_body("m", USER, (), Sampling(), Options())
        == b'{"model":"m","messages":[{"role":"user","content":"hi"}]}'
    )


def test_a_lone_surrogate_is_refused_with_its_place() -> None:
    messages = [*USER, {"role": "tool", "content": "a\ud800b"}]
    with pytest.raises(ModelRefused, match=r"message 2 \(tool\) holds a lone surrogate"):
        request_body("m", messages, (), Sampling(), Options())
    with pytest.raises(ModelRefused, match=r"\[sampling\] extra cannot be sent"):
        request_body("m", USER, (), Sampling(extra={"x": object()}), Options())


@pytest.mark.parametrize(
    ("model", "host", "key"),
    [
        ("gpt-5-mini", "api.openai.com", "max_completion_tokens"),
        ("o3", "api.openai.com", "max_completion_tokens"),
        ("gpt-4o", "api.openai.com", "max_tokens"),
        ("gpt-5-mini", "localhost", "max_tokens"),
    ],
)
def test_the_name_of_the_limit(model: str, host: str, key: str) -> None:
    assert max_tokens_key(model, host) == key


def answer(message: Any, **choice: Any) -> dict[str, Any]:
    return {"id": "i", "model": "m", "choices": [{"index": 0, "message": message, **choice}]}


def test_reasoning_is_kept_apart_and_nulls_are_dropped() -> None:
    message = {"role": "assistant", "content": "x", "reasoning_content": "hm", "tool_calls": [], "refusal": None}
    found = parse_answer(answer(message, finish_reason="stop", stop_reason=5) | {"system_fingerprint": "f"})
    assert found == Completion(
        message={"role": "assistant", "content": "x"}, finish_reason="stop", reasoning="hm", model="m", response_id="i",
        extra={"system_fingerprint": "f", "stop_reason": 5},
    )  # fmt: skip


def test_usage_counts_cached_and_reasoning_tokens() -> None:
    usage = {
        "prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 8},
        "completion_tokens_details": {"reasoning_tokens": 3},
    }  # fmt: skip
    assert parse_answer(answer({"content": "x"}) | {"usage": usage}).usage == Usage(10, 5, 3, 8)
    for unreadable in (None, {}, [], {"prompt_tokens": "many"}, {"prompt_tokens": -1, "completion_tokens": 2}):
        assert parse_answer(answer({"content": "x"}) | {"usage": unreadable}).usage is None


def test_token_ids_and_logprobs_pass_untouched() -> None:
    logprobs = {"content": [{"token": "x", "logprob": -0.5, "bytes": [120], "top_logprobs": []}]}
    found = parse_answer(answer({"content": "x"}, token_ids=[5], logprobs=logprobs) | {"prompt_token_ids": [1, 2]})
    assert (found.prompt_token_ids, found.token_ids, found.logprobs) == ([1, 2], [5], logprobs)
    inside = parse_answer(answer({"content": "x"}, token_ids=[5], prompt_token_ids=[9]))
    assert inside.prompt_token_ids == [9]


def test_tool_calls_keep_malformed_arguments_and_get_an_id() -> None:
    calls = [{"id": "a", "function": {"name": "f", "arguments": "{not json"}}, {"function": {"name": "g"}, "index": 1}]
    found = parse_answer(answer({"content": None, "tool_calls": calls})).message["tool_calls"]
    assert found[0] == {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{not json"}}
    assert found[1]["id"].startswith("call_")
    assert found[1]["function"] == {"name": "g", "arguments": ""}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([], "not a JSON object but a list"),
        ({}, "`choices` is not a list but missing"),
        ({"choices": []}, "no choice"),
        ({"choices": [1]}, "`choices[0]` is not an object"),
        ({"choices": [{}]}, "`choices[0].message` is not an object but missing"),
        (answer({"content": 5}), "`message.content` is not a text but a number"),
        (answer({"content": "x"}, finish_reason=1), "`finish_reason` is not a string"),
        (answer({"tool_calls": {}}), "`tool_calls` is not a list but an object"),
        (answer({"tool_calls": [{}]}), "names no function"),
        (answer({"tool_calls": [{"function": {"name": "f", "arguments": 1}}]}), "arguments of a tool call"),
        (answer({"content": "x"}, token_ids=["a"]), "`token_ids` is not a list of integers"),
    ],
)
def test_what_is_no_answer_is_garbled(value: Any, words: str) -> None:
    with pytest.raises(ModelGarbled) as error:
        parse_answer(value)
    assert words in str(error.value)


def test_what_is_not_json_is_shown() -> None:
    with pytest.raises(ModelGarbled, match=r"an HTML page .*502 Bad Gateway"):
        parse_json(b"<html><body>502\n\x00Bad Gateway</body></html>")
    with pytest.raises(ModelGarbled, match=r"no JSON .*\(empty\)"):
        parse_json(b"")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(["choices", "message", "content", "tool_calls", "function", "name", "arguments", "usage",
                         "prompt_tokens", "token_ids", "reasoning", "finish_reason", "id"]),
        inner, max_size=5,
    ),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(json_values)
def test_any_json_is_an_answer_or_garbled(value: Any) -> None:
    for body in (value, {"choices": [value]}, {"choices": [{"message": value}]}):
        try:
            found = parse_answer(body)
        except ModelGarbled:
            continue
        assert found.message["role"] == "assistant"


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_json_or_garbled(body: bytes) -> None:
    try:
        parse_json(body)
    except ModelGarbled as error:
        assert str(error).isprintable()
