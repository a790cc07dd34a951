"""Each row of the first generation's tool helpers and message helpers."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner import (
    ToolArgumentError,
    ToolExecutionError,
    count_messages_by_role,
    create_tool_error_result,
    create_tool_result,
    execute_tool_calls,
    get_message_content,
    get_message_role,
    get_tool_call_info,
    is_assistant_message,
    is_tool_message,
    is_user_message,
    normalize_stop,
    parse_tool_arguments,
    parse_tool_calls,
    serialize_tool_result,
)


def call(arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "add", "arguments": arguments}, **more}


def test_results_are_tool_messages() -> None:
    assert create_tool_result("c1", "3") == {"role": "tool", "content": "3", "tool_call_id": "c1"}
    assert create_tool_error_result("c1", "no")["content"] == "Error: no"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"), (False, "false"), (3, "3"), (0.1, "0.1"), (float("nan"), "nan"), ("as it is", "as it is"),
        (None, "null"), ({"ä": [1]}, '{"\\u00e4": [1]}'), ([1, "a"], '[1, "a"]'),
    ],
)  # fmt: skip
def test_a_result_becomes_text(value: Any, text: str) -> None:
    assert serialize_tool_result(value) == text


@pytest.mark.parametrize("value", [b"x", {1}, Decimal(1)])
def test_what_json_has_no_form_for_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        serialize_tool_result(value)


def test_arguments_are_an_object_or_its_text() -> None:
    given = {"a": 1}
    assert parse_tool_arguments(given) is given
    assert parse_tool_arguments('{"a": 1}') == given


@pytest.mark.parametrize("arguments", ["", "{", "[1]", "3", '"a"', None, 3, "[" * 100_000])
def test_arguments_that_are_none_are_refused(arguments: Any) -> None:
    with pytest.raises(ToolArgumentError):
        parse_tool_arguments(arguments)


def test_what_a_call_says() -> None:
    assert get_tool_call_info(call('{"a": 1}')) == ("c1", "add", {"a": 1})
    assert get_tool_call_info({"function": {"name": "add", "arguments": {}}})[0] == "unknown"
    assert get_tool_call_info(call(id=None))[0] is None
    assert get_tool_call_info({"id": "c1", "function": {"name": "add"}})[2] == {}


@pytest.mark.parametrize("bad", [call("{"), call(None), {"id": "c1", "function": None}])
def test_an_unreadable_call_knows_whose_it_is(bad: dict[str, Any]) -> None:
    with pytest.raises(ToolArgumentError) as caught:
        get_tool_call_info(bad)
    assert caught.value.tool_call_id == "c1"
    assert caught.value.tool_name in ("add", None)
    assert isinstance(caught.value, ToolExecutionError)


def test_a_call_that_is_a_text_is_refused() -> None:
    with pytest.raises(ToolArgumentError, match="found str"):
        get_tool_call_info("add(1)")  # type: ignore[arg-type]


def test_calls_run_at_once_and_answer_in_order() -> None:
    started: list[str] = []

    async def executor(each: dict[str, Any]) -> dict[str, Any]:
        started.append(each["id"])
        while len(started) < 3:  # noqa: ASYNC110 (would hang if they came one after another)
            await asyncio.sleep(0)
        return create_tool_result(each["id"], "done")

    async def run() -> list[dict[str, Any]]:
        return await execute_tool_calls([call(id=str(place)) for place in range(3)], executor)

    assert [each["tool_call_id"] for each in asyncio.run(run())] == ["0", "1", "2"]
    assert asyncio.run(execute_tool_calls([], executor)) == []
    assert asyncio.run(execute_tool_calls(None, executor)) == []


def test_an_exception_is_raised_or_kept_to_its_call() -> None:
    async def executor(each: dict[str, Any]) -> dict[str, Any]:
        if each["id"] == "bad":
            raise KeyError("x")
        return create_tool_result(each["id"], "done")

    calls = [call(id="good"), call(id="bad")]
    with pytest.raises(KeyError):
        asyncio.run(execute_tool_calls(calls, executor))
    isolated = asyncio.run(execute_tool_calls(calls, executor, isolate=True))
    assert [each["content"] for each in isolated] == ["done", "Error: KeyError: 'x'"]


def test_questions_about_messages() -> None:
    calls = [call()]
    assert parse_tool_calls({"tool_calls": calls}) == calls
    assert [parse_tool_calls(each) for each in ({}, {"tool_calls": None}, {"tool_calls": "x"})] == [[], [], []]
    assert [normalize_stop(each) for each in ("a", ["a", 1], ("a",), None, 3)] == [["a"], ["a", "1"], ["a"], None, None]
    assert [get_message_content(each) for each in ({"content": "x"}, {"content": None}, {})] == ["x", "", ""]
    assert get_message_role({}) == "unknown"
    messages = [{"role": "user"}, {"role": "assistant"}, {"role": "tool"}, {}]
    assert [is_user_message(each) for each in messages] == [True, False, False, False]
    assert [is_assistant_message(each) for each in messages] == [False, True, False, False]
    assert [is_tool_message(each) for each in messages] == [False, False, True, False]
    assert count_messages_by_role([*messages, {"role": "user"}]) == {"user": 2, "assistant": 1, "tool": 1, "unknown": 1}


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)
_CALLS = _JSON | st.fixed_dictionaries(
    {},
    optional={"id": _JSON, "function": _JSON | st.fixed_dictionaries({}, optional={"name": _JSON, "arguments": _JSON})},
)


@given(_CALLS)
@settings(max_examples=200)
def test_whatever_a_model_wrote_is_read_or_refused_in_one_way(given_call: Any) -> None:
    try:
        _, _, arguments = get_tool_call_info(given_call)
    except ToolArgumentError as error:
        assert str(error)
    else:
        assert isinstance(arguments, dict)
