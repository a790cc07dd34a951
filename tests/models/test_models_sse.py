"""The event stream: however it is cut, the answer is the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.models.double_answer import completion, events
from runner.models.sse import DeltaAssembler, ErrorFrame, EventParser, StreamError
from runner.models.wire import parse_answer


def read(data: bytes, cuts: list[int] | None = None) -> list[bytes]:
    parser, found, start = EventParser(), [], 0
    for cut in [*sorted(cuts or []), len(data)]:
        found += parser.feed(data[start:cut])
        start = cut
    return found


STREAM = (
    b'\xef\xbb\xbf: a comment\r\ndata: {"a": 1}\r\n\r\nevent: x\rdata:two\rdata: lines\r\rid: 7\n\n'
    b"data: \xc3\xa9\n\nretry: 5\ndata: last\n\n"
)
EVENTS = [b'{"a": 1}', b"two\nlines", b"\xc3\xa9", b"last"]


def test_line_ends_comments_and_other_fields() -> None:
    assert read(STREAM) == EVENTS


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, len(STREAM)), max_size=40))
def test_events_do_not_depend_on_where_the_bytes_are_cut(cuts: list[int]) -> None:
    assert read(STREAM, cuts) == EVENTS


def test_an_unfinished_event_is_none() -> None:
    assert read(b"data: x\n") == []


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
calls = st.lists(st.tuples(st.sampled_from(["add", "search"]), texts), max_size=3)


@settings(max_examples=80, deadline=None)
@given(text=texts, reasoning=texts, tools=calls, cuts=st.lists(st.integers(0, 4000), max_size=20), ids=st.booleans())
def test_a_streamed_answer_is_the_answer(
    text: str, reasoning: str, tools: list[tuple[str, str]], cuts: list[int], ids: bool
) -> None:
    said: dict[str, Any] = {"content": text}
    if reasoning:
        said["reasoning_content"] = reasoning
    if tools:
        said["tool_calls"] = [{"function": {"name": name, "arguments": arguments}} for name, arguments in tools]
    request = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "logprobs": ids, "return_token_ids": ids}
    whole = completion(request, said, token_ids=True)
    data = b"".join(events(whole, include_usage=True))
    deltas = DeltaAssembler()
    for event in read(data, [cut for cut in cuts if cut <= len(data)]):
        if event != b"[DONE]":
            deltas.add(json.loads(event))
    assert deltas.complete
    streamed, expected = parse_answer(deltas.result()), parse_answer(json.loads(json.dumps(whole)))
    assert streamed == expected


def delta(calls: list[dict[str, Any]]) -> dict[str, Any]:
    return {"choices": [{"delta": {"tool_calls": calls}}]}


def assembled(*chunks: dict[str, Any]) -> list[dict[str, Any]]:
    deltas = DeltaAssembler()
    for chunk in chunks:
        deltas.add(chunk)
    found: list[dict[str, Any]] = deltas.result()["choices"][0]["message"]["tool_calls"]
    return found


def functions(found: list[dict[str, Any]]) -> list[tuple[str, str, str]]:
    return [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in found]


def test_interleaved_calls_are_kept_apart_by_index() -> None:
    found = assembled(
        delta([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "{"}}]),
        delta([{"index": 1, "id": "b", "function": {"name": "g", "arguments": "["}}]),
        delta([{"index": 0, "function": {"arguments": "}"}}, {"index": 1, "function": {"arguments": "]"}}]),
    )
    assert functions(found) == [("a", "f", "{}"), ("b", "g", "[]")]


def test_calls_without_ids_or_with_one_index_for_all() -> None:
    no_ids = assembled(
        delta([{"index": 0, "function": {"name": "f", "arguments": "1"}}]),
        delta([{"index": 1, "function": {"name": "f", "arguments": "2"}}]),
    )
    assert functions(no_ids) == [("", "f", "1"), ("", "f", "2")]
    one_index = assembled(
        delta([{"index": 0, "id": "a", "function": {"name": "f", "arguments": "1"}}]),
        delta([{"index": 0, "id": "b", "function": {"name": "f", "arguments": "2"}}]),
        delta([{"index": 0, "function": {"arguments": "3"}}]),
    )
    assert functions(one_index) == [("a", "f", "1"), ("b", "f", "23")]
    no_index = assembled(
        delta([{"id": "a", "function": {"name": "f", "arguments": {"x": 1}}}]),
        delta([{"function": {"name": "g", "arguments": "2"}}]),
        delta([{"function": {"arguments": "3"}}]),
    )
    assert functions(no_index) == [("a", "f", '{"x": 1}'), ("", "g", "23")]


def test_ids_logprobs_and_reasoning_are_joined() -> None:
    deltas = DeltaAssembler()
    deltas.add({"prompt_token_ids": [1, 2], "choices": [{"delta": {"reasoning": "hm"}, "token_ids": [3]}]})
    deltas.add({"choices": [{"delta": {"content": "x"}, "token_ids": [4], "logprobs": {"content": [1]}}]})
    deltas.add({"choices": [{"delta": {}, "finish_reason": "stop", "logprobs": {"content": [2]}}]})
    deltas.add({"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 2}})
    found = parse_answer(deltas.result())
    assert (found.prompt_token_ids, found.token_ids, found.logprobs) == ([1, 2], [3, 4], {"content": [1, 2]})
    assert (found.reasoning, found.message) == ("hm", {"role": "assistant", "content": "x"})
    assert found.usage is not None
    assert found.usage.total_tokens == 4


def test_an_error_frame_and_nonsense() -> None:
    with pytest.raises(ErrorFrame) as frame:
        DeltaAssembler().add({"error": {"message": "overloaded", "code": 503}})
    assert frame.value.error == {"message": "overloaded", "code": 503}
    for nonsense in (
        [],
        {"choices": 1},
        {"choices": [1]},
        {"choices": [{"delta": 1}]},
        delta([{"function": 1}]),
        delta(1),
    ):  # type: ignore[arg-type]
        with pytest.raises(StreamError):
            DeltaAssembler().add(nonsense)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices",
                    "delta",
                    "tool_calls",
                    "function",
                    "name",
                    "arguments",
                    "index",
                    "id",
                    "content",
                    "logprobs",
                    "token_ids",
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(st.lists(json_values, max_size=4))
def test_any_json_is_merged_or_refused(chunks: list[Any]) -> None:
    deltas = DeltaAssembler()
    try:
        for chunk in chunks:
            deltas.add(chunk)
    except (StreamError, ErrorFrame):
        return
    assert isinstance(deltas.result()["choices"], list)
