"""`Pool`: lazy, bounded, and loud when something of ours breaks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import pytest

from runner.runtime.pool import Pool


def test_work_is_pulled_as_places_come_free() -> None:
    pulled: list[int] = []
    most = 0

    def work() -> Iterator[int]:
        for number in range(50):
            pulled.append(number)
            yield number

    async def main() -> None:
        nonlocal most
        pool = Pool(4)
        done = 0

        async def play(number: int) -> None:
            nonlocal most, done
            most = max(most, pool.running)
            assert len(pulled) <= done + 4
            await asyncio.sleep(0.001 * (number % 3))
            done += 1

        await pool.run(work(), play)
        assert done == 50

    asyncio.run(main())
    assert most == 4
    assert pulled == list(range(50))


def test_thousands_of_items() -> None:
    played = []

    async def main() -> None:
        async def play(number: int) -> None:
            played.append(number)

        started = time.perf_counter()
        await Pool(1000).run(range(20_000), play)
        assert time.perf_counter() - started < 5

    asyncio.run(main())
    assert played == list(range(20_000))


def test_an_error_in_play_stops_the_pool_and_is_raised() -> None:
    ended: list[int] = []

    async def main() -> None:
        async def play(number: int) -> None:
            if number == 3:
                raise OSError("disk full")
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(number)

        pool = Pool(4)
        with pytest.raises(OSError, match="disk full"):
            await asyncio.wait_for(pool.run(range(10), play), 5)
        assert pool.running == 0

    asyncio.run(main())
    assert sorted(ended) == [0, 1, 2]


def test_an_error_in_the_work_stops_the_pool_and_is_raised() -> None:
    ended: list[int] = []

    def work() -> Iterator[int]:
        yield from range(3)
        raise ValueError("line 4 is no JSON")

    async def main() -> None:
        async def play(number: int) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                ended.append(number)

        with pytest.raises(ValueError, match="line 4"):
            await asyncio.wait_for(Pool(8).run(work(), play), 5)
        # They were never begun: the work broke before they had their turn.
        assert ended == []

    asyncio.run(main())


def test_cancelling_the_run_cancels_what_runs() -> None:
    ended: list[int] = []

    async def main() -> None:
        async def play(number: int) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.01)
                ended.append(number)

        running = asyncio.create_task(Pool(3).run(range(10), play))
        await asyncio.sleep(0.01)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(main())
    assert sorted(ended) == [0, 1, 2]


def test_who_is_in_a_hurry_cancels_twice() -> None:
    async def main() -> None:
        async def play(number: int) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(60)

        running = asyncio.create_task(Pool(3).run(range(10), play))
        for _ in range(2):
            await asyncio.sleep(0.01)
            running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(running, 5)

    asyncio.run(main())


def test_a_rollout_that_vanishes_is_an_error() -> None:
    async def main() -> None:
        async def play(number: int) -> None:
            raise asyncio.CancelledError

        with pytest.raises(RuntimeError, match="not by the pool"):
            await Pool(2).run(range(3), play)

    asyncio.run(main())


def test_cancelled_before_it_began_plays_nothing() -> None:
    async def main() -> None:
        pool = Pool(2)
        pool.cancel()

        async def play(number: int) -> None:
            raise AssertionError("never")

        await pool.run(range(3), play)

    asyncio.run(main())


def test_no_work_is_no_problem() -> None:
    async def main() -> None:
        async def play(number: int) -> None:
            raise AssertionError("never")

        await asyncio.wait_for(Pool(2).run([], play), 1)

    asyncio.run(main())


def test_a_pool_needs_a_place() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Pool(0)
