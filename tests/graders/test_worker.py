"""Worker processes: killed for real, from inside and from outside."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import pytest

from runner.graders.worker import Workers
from runner.records.failure import GraderError, GraderTimeout

EASY = {"pattern": "b", "flags": 0, "text": "abc", "full": False, "group": None, "take": "last"}
ENDLESS = {**EASY, "pattern": "(a+)+$", "text": "a" * 60 + "b"}


def _gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_lazy_bounded_and_clean() -> None:
    async def use() -> tuple[list[int], list[int], list[Any]]:
        workers = Workers(size=2)
        before = workers.pids
        found = await asyncio.gather(*(workers.ask("find", EASY, 5.0) for _ in range(20)))
        during = workers.pids
        await workers.aclose()
        assert workers.pids == []
        return before, during, found

    before, during, found = asyncio.run(use())
    assert before == []
    assert 1 <= len(during) <= 2
    assert all(_gone(pid) for pid in during)
    assert found == [{"found": "b"}] * 20


def test_an_overrun_kills_one_and_the_next_gets_a_fresh_one() -> None:
    async def use() -> tuple[list[int], list[int]]:
        workers = Workers(size=1)
        await workers.ask("find", EASY, 5.0)
        first = workers.pids
        with pytest.raises(GraderTimeout):
            await workers.ask("find", ENDLESS, 0.3)
        assert await workers.ask("find", EASY, 5.0) == {"found": "b"}
        second = workers.pids
        await workers.aclose()
        return first, second

    first, second = asyncio.run(use())
    assert first != second
    assert all(_gone(pid) for pid in first + second)


def test_a_worker_killed_from_outside_is_replaced() -> None:
    async def use() -> None:
        workers = Workers(size=1)
        for _ in range(3):
            assert await workers.ask("find", EASY, 5.0) == {"found": "b"}
            os.kill(workers.pids[0], signal.SIGKILL)
        asking = asyncio.ensure_future(workers.ask("find", {**EASY, "text": "b" * 1000}, 5.0))
        assert await asking == {"found": "b"}
        await workers.aclose()

    asyncio.run(use())


def test_a_worker_that_dies_twice_over_one_answer_is_an_error() -> None:
    async def use() -> None:
        workers = Workers(size=1)
        await workers.ask("find", EASY, 5.0)
        asking = asyncio.ensure_future(workers.ask("find", ENDLESS, 30.0))
        killed: set[int] = set()
        while not asking.done():
            for pid in set(workers.pids) - killed:
                await asyncio.sleep(0.3)
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            await asyncio.sleep(0.02)
        with pytest.raises(GraderError, match="died twice"):
            await asking
        await workers.aclose()

    asyncio.run(use())


def test_cancelling_kills_the_worker() -> None:
    async def use() -> None:
        workers = Workers(size=1)
        await workers.ask("find", EASY, 5.0)
        pid = workers.pids[0]
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await workers.ask("find", ENDLESS, 30.0)
        assert await workers.ask("find", EASY, 5.0) == {"found": "b"}
        assert workers.pids != [pid]
        await workers.aclose()
        assert _gone(pid)

    asyncio.run(use())


def test_memory_is_limited() -> None:
    async def use() -> None:
        workers = Workers(size=1, memory=128 << 20)
        # 2**24 characters, which the worker reads, decodes and copies.
        with pytest.raises(GraderError):
            await workers.ask("find", {**EASY, "pattern": "(?s)(.*)", "text": "\u4e00" * (1 << 24)}, 20.0)
        assert await workers.ask("find", EASY, 5.0) == {"found": "b"}
        await workers.aclose()

    asyncio.run(use())


def test_used_again_after_closing_and_on_another_loop() -> None:
    workers = Workers(size=1)

    async def use() -> None:
        assert await workers.ask("find", {**EASY, "text": "b\ud800"}, 5.0) == {"found": "b"}
        await workers.aclose()
        await workers.aclose()

    asyncio.run(use())
    asyncio.run(use())


def test_closing_while_somebody_asks() -> None:
    async def use() -> None:
        workers = Workers(size=1)
        await workers.ask("find", EASY, 5.0)
        asking = asyncio.ensure_future(workers.ask("find", ENDLESS, 30.0))
        waiting = asyncio.ensure_future(workers.ask("find", EASY, 30.0))
        await asyncio.sleep(0.1)
        pids = workers.pids
        await workers.aclose()
        for task in (asking, waiting):
            with pytest.raises(GraderError, match="closed its worker processes"):
                await task
        assert workers.pids == []
        assert all(_gone(pid) for pid in pids)

    asyncio.run(use())
