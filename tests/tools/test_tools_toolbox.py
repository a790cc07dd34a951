"""Running the calls of a turn: order, parallel, ids, and one failure that hurts nobody else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from runner.records.completion import Caller, ToolSpec
from runner.records.failure import ConfigFailure, ToolError
from runner.records.message import ToolCall
from runner.tools.callable import CallableTool
from runner.tools.signature import derive
from runner.tools.tool import ToolResult, ToolScope
from runner.tools.toolbox import Answer, Toolbox

SCOPE = ToolScope(Caller("r-1"))


def search(query: str, top_k: int = 5) -> str:
    return f"{query}/{top_k}"


def broken() -> str:
    raise ValueError("broken")


def four_threads() -> Callable[[], str]:
    four = threading.Barrier(4, timeout=10)

    def meets() -> str:
        four.wait()  # raises when the others do not come
        return "done"

    return meets


def four_tasks() -> Callable[[], Awaitable[str]]:
    four = asyncio.Barrier(4)

    async def meets() -> str:
        async with asyncio.timeout(10):
            await four.wait()
        return "done"

    return meets


def box(*functions: Callable[..., Any], parallel: int = 8) -> Toolbox:
    return Toolbox({each.__name__: CallableTool(derive(each), each) for each in functions}, parallel)


def run(toolbox: Toolbox, *calls: ToolCall, **options: Any) -> list[Answer]:
    return asyncio.run(toolbox.run(calls, SCOPE, **options))


def test_answers_come_in_order_as_tool_messages() -> None:
    answers = run(
        box(search, broken),
        ToolCall("a", "search", '{"query": "refund"}'),
        ToolCall("b", "broken", ""),
        ToolCall("c", "serch", "{}"),
        ToolCall("d", "search", "{"),
        ToolCall("e", "search", '{"query": "x", "top_k": 1}'),
    )
    assert [answer.result.status for answer in answers] == ["ok", "error", "bad_call", "bad_call", "ok"]
    assert answers[0].message == {"role": "tool", "tool_call_id": "a", "name": "search", "content": "refund/5"}
    assert answers[1].message["content"] == "ValueError: broken"
    assert answers[2].message["content"] == (
        "There is no tool called `serch`; did you mean `search`? Tools: `broken`, `search`."
    )
    assert answers[3].message["content"].startswith("The arguments are not valid JSON")
    assert answers[4].message["content"] == "x/1"
    assert all(answer.seconds >= 0 for answer in answers)


def test_no_tools_and_no_name() -> None:
    (answer,) = run(Toolbox({}), ToolCall("a", "", ""))
    assert answer.message == {
        "role": "tool",
        "tool_call_id": "a",
        "content": "The call names no tool: no tools are offered. Answer without one.",
    }
    assert run(Toolbox({})) == []


@pytest.mark.parametrize("make", [four_threads, four_tasks])
def test_four_slow_tools_run_at_the_same_time(make: Callable[[], Callable[..., Any]]) -> None:
    answers = run(box(make()), *[ToolCall(str(n), "meets", "") for n in range(4)])
    assert [answer.message["content"] for answer in answers] == ["done"] * 4


def test_parallel_bounds_how_many_run_at_once() -> None:
    at_once = most = 0

    async def busy() -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1

    run(box(busy, parallel=2), *(ToolCall(str(n), "busy", "") for n in range(6)))
    assert most == 2


def test_missing_and_doubled_ids_become_stable_unique_ones() -> None:
    calls = [
        ToolCall("", "broken", ""),
        ToolCall("x", "broken", ""),
        ToolCall("x", "broken", ""),
        ToolCall("", "b", ""),
    ]
    ids = [answer.message["tool_call_id"] for answer in run(box(broken), *calls)]
    assert ids[1] == "x"
    assert len(set(ids)) == 4
    assert all(ids)
    assert ids == [answer.call.id for answer in run(box(broken), *calls)]
    assert ids[0] != run(box(broken), *calls, turn=2)[0].call.id


def test_hooks_hear_every_call() -> None:
    heard: list[Any] = []
    run(
        box(search),
        ToolCall("a", "search", '{"query": "x"}'),
        ToolCall("b", "nothing", ""),
        on_start=lambda call: heard.append(("start", call.id)),
        on_end=lambda call, result, seconds: heard.append(("end", call.id, result.status, seconds >= 0)),
    )
    assert sorted(heard) == [("end", "a", "ok", True), ("end", "b", "bad_call", True), ("start", "a"), ("start", "b")]


def test_a_tool_error_cancels_the_siblings_and_waits_for_them() -> None:
    steps: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            steps.append("slow ended")

    async def lost() -> None:
        await asyncio.sleep(0.02)
        raise ToolError("the sandbox is gone")

    heard: list[str] = []
    with pytest.raises(ToolError, match="gone"):
        run(
            box(slow, lost),
            ToolCall("a", "slow", ""),
            ToolCall("b", "lost", ""),
            on_end=lambda call, result, seconds: heard.append(f"{call.name} {result.status}"),
        )
    assert steps == ["slow ended"]
    assert heard == ["lost error"]


def test_cancellation_reaches_every_call() -> None:
    steps: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            steps.append("ended")

    async def main() -> None:
        task = asyncio.create_task(box(slow).run([ToolCall(str(n), "slow", "") for n in range(3)], SCOPE))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert steps == ["ended"] * 3

    asyncio.run(main())


class Rude:
    """A tool that breaks the promise of the protocol."""

    spec = ToolSpec("rude", "", {"type": "object"})

    def __init__(self, error: BaseException) -> None:
        self.error = error

    async def call(self, arguments: dict[str, Any], scope: ToolScope) -> ToolResult:
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("rude"), asyncio.CancelledError("rude")])
def test_a_tool_that_raises_in_spite_of_its_promise_hurts_nobody_else(error: BaseException) -> None:
    toolbox = Toolbox({"rude": Rude(error), "search": CallableTool(derive(search), search)})
    answers = run(toolbox, ToolCall("a", "rude", ""), ToolCall("b", "search", '{"query": "x"}'))
    assert [answer.result.status for answer in answers] == ["error", "ok"]
    assert answers[0].message["content"] == f"{type(error).__name__}: rude"


def test_a_schema_that_cannot_be_used_is_no_fault_of_the_model() -> None:
    lost = ToolSpec("search", "", {"properties": {"query": {"$ref": "https://elsewhere.example/query"}}})
    with pytest.raises(ConfigFailure, match="the parameters of `search` cannot be checked"):
        run(Toolbox({"search": CallableTool(lost, search)}), ToolCall("a", "search", '{"query": "x"}'))


def test_specs_have_the_names_of_the_box() -> None:
    (spec,) = Toolbox({"find": CallableTool(derive(search), search)}).specs
    assert (spec.name, spec.parameters) == ("find", derive(search).parameters)
