"""Python functions as tools: threads, time limits, retries, faults, and what goes back to the model."""

from __future__ import annotations

import asyncio
import contextvars
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import partial, wraps
from typing import Any

import pytest

from runner.records.completion import Caller
from runner.records.failure import ToolError
from runner.tools.callable import CallableTool, Retry
from runner.tools.injection import injector
from runner.tools.signature import derive
from runner.tools.tool import ToolResult, ToolScope

SCOPE = ToolScope(Caller("r-1", {"city": "Oslo", "tags": ["a"]}, attempt=2), {"db": {"o1": "shipped"}})


def tool(function: Callable[..., Any], **options: Any) -> CallableTool:
    return CallableTool(derive(function, injected=options.get("inject", ())), function, **options)


def call(function: Callable[..., Any], arguments: dict[str, Any] | None = None, **options: Any) -> ToolResult:
    return asyncio.run(tool(function, **options).call(arguments or {}, SCOPE))


def add(a: int, b: int = 1) -> int:
    return a + b


async def add_later(a: int, b: int = 1) -> int:
    await asyncio.sleep(0)
    return a + b


class Adder:
    def __call__(self, a: int, b: int = 1) -> int:
        return a + b


class LaterAdder:
    async def __call__(self, a: int, b: int = 1) -> int:
        return a + b


@wraps(add_later)
def wrapped(*args: Any, **kwargs: Any) -> Any:
    return add_later(*args, **kwargs)


def disguised(a: int, b: int = 1) -> Any:
    return add_later(a, b)


@pytest.mark.parametrize("function", [add, add_later, Adder(), LaterAdder(), wrapped, disguised, partial(add, b=1)])
def test_every_kind_of_callable_is_called(function: Callable[..., Any]) -> None:
    assert call(function, {"a": 2}) == ToolResult("3")


def test_generators_are_read_to_their_end() -> None:
    def words() -> Iterator[str]:
        yield "a"
        yield "b"

    async def numbers() -> AsyncIterator[int]:
        yield 1
        yield 2

    def endless() -> Iterator[int]:
        while True:
            yield 1

    assert call(words).content == "ab"
    assert call(numbers).content == "[1, 2]"
    result = call(endless)
    assert (result.status, result.content) == (
        "error",
        "The tool returned something that cannot be sent: a generator gave more than 10,000 items.",
    )


def test_arguments_become_what_the_hints_ask_for() -> None:
    @dataclass
    class Stay:
        start: date
        nights: int = 1

    def book(stay: Stay) -> str:
        return f"{stay.start:%A} {stay.nights}"

    book.__annotations__["stay"] = Stay
    assert call(book, {"stay": {"start": "2024-02-29"}}).content == "Thursday 1"
    bad = call(book, {"stay": {"start": "2024-02-30"}})
    assert bad.status == "bad_call"
    assert bad.content.startswith("Bad arguments: `stay.start`: Input should be a valid date")


def test_injected_arguments_come_from_the_scope() -> None:
    def lookup(order: str, db: Any, row: Any, city: str, who: str, attempt: int) -> str:
        row["tags"].append("changed")
        return f"{db[order]} {city} {who} {attempt}"

    inject = {
        name: injector(text)
        for name, text in {
            "db": "resource:db", "row": "row", "city": "row.city", "who": "rollout_id", "attempt": "attempt"
        }.items()
    }  # fmt: skip
    assert call(lookup, {"order": "o1"}, inject=inject).content == "shipped Oslo r-1 2"
    assert SCOPE.caller.row["tags"] == ["a"], "a tool gets a copy of the row"


@pytest.mark.parametrize("text", ["resource:", "row.", "label", "rows", ""])
def test_only_known_things_can_be_injected(text: str) -> None:
    with pytest.raises(ValueError, match="cannot be injected"):
        injector(text)


@pytest.mark.parametrize("text", ["resource:cache", "row.country"])
def test_a_missing_injection_ends_the_rollout(text: str) -> None:
    with pytest.raises(ToolError, match=r"cache|country"):
        call(add, {"a": 1}, inject={"b": injector(text)})


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def raiser(error: BaseException) -> Callable[[], Any]:
    def fail() -> None:
        raise error

    return fail


def raiser_later(error: BaseException) -> Callable[[], Any]:
    async def fail() -> None:
        raise error

    return fail


@pytest.mark.parametrize("make", [raiser, raiser_later])
@pytest.mark.parametrize(
    ("error", "content"),
    [
        (ValueError("no such order"), "ValueError: no such order"),
        (ZeroDivisionError(), "ZeroDivisionError"),
        (Unprintable(), "Unprintable: (its message raised RuntimeError)"),
        (SystemExit(3), "SystemExit: 3"),
        (StopIteration("x"), "StopIteration: x"),
        (TimeoutError("mine"), "TimeoutError: mine"),
        (ExceptionGroup("two", [ValueError("a")]), "ExceptionGroup: two (1 sub-exception)"),
    ],
)
def test_an_exception_is_an_answer(make: Any, error: BaseException, content: str) -> None:
    if isinstance(error, StopIteration) and make is raiser_later:
        content = "RuntimeError: coroutine raised StopIteration"
    result = call(make(error), timeout=5.0)
    assert (result.status, result.content) == ("error", content)
    assert "Traceback" not in result.content


def test_the_frame_of_user_code_is_kept_for_the_record() -> None:
    def parse() -> Any:
        import json

        return json.loads("{")

    result = call(parse)
    assert result.where.startswith(__file__)
    assert result.where.endswith(" in parse")
    assert result.detail.startswith("Traceback")
    assert "runner/tools" not in result.detail


@pytest.mark.parametrize("make", [raiser, raiser_later])
def test_a_tool_that_cancels_itself_is_an_error_and_not_a_cancellation(make: Any) -> None:
    assert call(make(asyncio.CancelledError())).status == "error"


@pytest.mark.parametrize("make", [raiser, raiser_later])
def test_errors_that_end_the_rollout_pass_through(make: Any) -> None:
    with pytest.raises(ToolError, match="gone"):
        call(make(ToolError("gone")))
    with pytest.raises(KeyboardInterrupt):
        call(make(KeyboardInterrupt()))


def test_a_tool_result_passes_through() -> None:
    answer = ToolResult("no", "error", where="x")
    assert call(lambda: answer) == answer


def test_outputs_that_cannot_be_sent_are_errors() -> None:
    result = call(lambda: {"a": object()})
    assert result.status == "error"
    assert "`object` has no JSON form" in result.content
    assert call(lambda: float("nan")).status == "error"
    assert call(lambda: "\ud800").content == "\ufffd"


def test_50_mb_are_cut_quickly() -> None:
    big = "x" * 50_000_000
    started = time.perf_counter()
    result = call(lambda: big, max_output=8000)
    assert time.perf_counter() - started < 1.0
    assert result.truncated
    assert len(result.content) <= 8000
    assert "characters cut …]" in result.content
    assert len(call(lambda: big).content) <= 100_000
    failed = call(raiser(ValueError(big)), max_output=100)
    assert len(failed.content) <= 100
    assert len(failed.detail) < 10_000


def hang() -> None:
    time.sleep(1.0)


async def hang_later() -> None:
    await asyncio.sleep(30)


async def hang_stubbornly() -> None:
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        await asyncio.sleep(1.0)


@pytest.mark.parametrize("function", [hang, hang_later, hang_stubbornly])
def test_a_tool_that_hangs_is_given_up(function: Callable[..., Any]) -> None:
    async def main() -> tuple[ToolResult, float]:
        started = time.perf_counter()
        result = await tool(function, timeout=0.1).call({}, SCOPE)
        return result, time.perf_counter() - started

    result, seconds = asyncio.run(main())
    assert (result.status, result.content) == ("timeout", f"`{function.__name__}` did not answer within 0.1 s.")
    assert seconds < 0.9


def test_abandoned_threads_keep_their_slot_and_who_waits_is_told() -> None:
    release = threading.Event()
    running: list[int] = []

    def stuck() -> str:
        running.append(1)
        release.wait(10)
        return "done"

    async def main() -> None:
        stuck_tool = tool(stuck, timeout=0.1, limit=2)
        results = await asyncio.gather(*(stuck_tool.call({}, SCOPE) for _ in range(5)), return_exceptions=True)
        assert [each.status for each in results[:2] if isinstance(each, ToolResult)] == ["timeout"] * 2
        assert all(isinstance(each, ToolError) and each.kind == "tool_stuck" for each in results[2:])
        with pytest.raises(ToolError, match="all 2 of its slots are held"):
            await stuck_tool.call({}, SCOPE)
        assert len(running) == 2
        release.set()
        await asyncio.sleep(0.2)
        assert (await stuck_tool.call({}, SCOPE)).content == "done"

    asyncio.run(main())


def test_a_slot_that_comes_back_late_is_waited_for() -> None:
    async def main() -> list[ToolResult]:
        slow_once = iter([0.3, 0.0, 0.0])

        def slow() -> str:
            time.sleep(next(slow_once))
            return "done"

        one = tool(slow, timeout=0.2, limit=1)
        return await asyncio.gather(*(one.call({}, SCOPE) for _ in range(3)))

    assert [result.status for result in asyncio.run(main())] == ["timeout", "ok", "ok"]


def test_a_hanging_thread_does_not_keep_the_process_alive() -> None:
    program = """
import asyncio, time
from runner.records.completion import Caller
from runner.tools.callable import CallableTool
from runner.tools.signature import derive
from runner.tools.tool import ToolScope
def hang(): time.sleep(60)
print(asyncio.run(CallableTool(derive(hang), hang, timeout=0.1).call({}, ToolScope(Caller("r")))).status)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout == "timeout\n"


@pytest.mark.parametrize("limit", [1, 3])
def test_the_limit_is_shared_by_all_rollouts(limit: int) -> None:
    at_once = most = 0

    async def busy() -> None:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1

    async def main() -> None:
        shared = tool(busy, limit=limit)
        await asyncio.gather(*(shared.call({}, SCOPE) for _ in range(10)))

    asyncio.run(main())
    assert most == limit


async def sleeper(seconds: float) -> None:
    await asyncio.sleep(seconds)


def test_cancelled_waiters_lose_no_slot() -> None:
    async def main() -> None:
        one = tool(sleeper, limit=1)
        first = asyncio.create_task(one.call({"seconds": 30}, SCOPE))
        waiting = [asyncio.create_task(one.call({"seconds": 30}, SCOPE)) for _ in range(3)]
        await asyncio.sleep(0.01)
        first.cancel()
        waiting[0].cancel()
        waiting[1].cancel()
        await asyncio.sleep(0.05)
        assert not waiting[2].done()
        waiting[2].cancel()
        await asyncio.gather(first, *waiting, return_exceptions=True)
        assert (await asyncio.wait_for(one.call({"seconds": 0}, SCOPE), 1)).status == "ok"

    asyncio.run(main())


def test_one_tool_serves_one_event_loop_after_another() -> None:
    shared = tool(add_later, limit=1)
    for _ in range(2):
        assert asyncio.run(shared.call({"a": 1}, SCOPE)).content == "2"


def test_threads_are_used_again_and_carry_the_context() -> None:
    where = contextvars.ContextVar("where", default="")
    seen: set[str] = set()

    def here() -> str:
        seen.add(threading.current_thread().name + str(threading.get_ident()))
        return where.get()

    async def main() -> None:
        where.set("rollout 7")
        once = tool(here)
        for _ in range(50):
            assert (await once.call({}, SCOPE)).content == "rollout 7"

    asyncio.run(main())
    assert len(seen) <= 2


def test_cancelling_a_call_cancels_the_tool_and_waits_for_it() -> None:
    steps: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        finally:
            steps.append("cleaned up")

    async def main() -> None:
        task = asyncio.create_task(tool(slow).call({}, SCOPE))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert steps == ["cleaned up"]

    asyncio.run(main())


def flaky(failures: int, error: Exception) -> tuple[Callable[[], str], list[int]]:
    tries: list[int] = []

    def fetch() -> str:
        tries.append(1)
        if len(tries) <= failures:
            raise error
        return f"after {len(tries)}"

    return fetch, tries


@pytest.mark.parametrize("name", ["ConnectionResetError", "ConnectionError", "OSError", "builtins.OSError"])
def test_named_exceptions_are_tried_again(name: str) -> None:
    fetch, _ = flaky(2, ConnectionResetError("reset"))
    assert call(fetch, retry=Retry(3, [name], backoff=0.001)).content == "after 3"


def test_other_exceptions_and_the_last_try_are_answers() -> None:
    fetch, tries = flaky(2, ValueError("no"))
    assert call(fetch, retry=Retry(3, ["OSError"], backoff=0.001)).content == "ValueError: no"
    assert len(tries) == 1
    fetch, tries = flaky(9, OSError("no"))
    assert call(fetch, retry=Retry(3, ["OSError"], backoff=0.001)).content == "OSError: no"
    assert len(tries) == 3


def test_the_tools_own_timeout_counts_as_timeout_error() -> None:
    tries: list[int] = []

    async def slow() -> str:
        tries.append(1)
        if len(tries) == 1:
            await asyncio.sleep(30)
        return "there"

    assert call(slow, timeout=0.1, retry=Retry(2, ["TimeoutError"], backoff=0.001)).content == "there"
