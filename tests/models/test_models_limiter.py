"""Limits, on a clock that only moves when told."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.models.limiter import AdaptiveLimit, FixedLimit
from runner.models.retry import delay, retry_after


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def enter(limiter: FixedLimit, count: int, tokens: int = 0) -> list[asyncio.Task[None]]:
    return [asyncio.ensure_future(limiter.acquire(tokens)) for _ in range(count)]


def test_first_come_first_served(clock: Any) -> None:
    async def play() -> list[int]:
        limiter, order = FixedLimit(2, clock=clock), []

        async def call(number: int) -> None:
            await limiter.acquire()
            order.append(number)
            await settle()
            limiter.release(healthy=True)

        await asyncio.gather(*[call(number) for number in range(50)])
        assert limiter.active == 0
        return order

    assert asyncio.run(play()) == list(range(50))


def test_cancelled_waiters_lose_nothing(clock: Any) -> None:
    async def play() -> None:
        limiter = FixedLimit(1, clock=clock)
        await limiter.acquire()
        waiters = enter(limiter, 3)
        await settle()
        waiters[0].cancel()
        limiter.release(healthy=True)  # hands the slot to waiter 1 in the same instant...
        waiters[1].cancel()  # ...as it is cancelled
        await settle()
        assert waiters[2].done()
        assert not waiters[2].cancelled()
        assert (limiter.active, limiter.waiting) == (1, 0)

    asyncio.run(play())


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 6))
def test_no_slot_is_ever_lost(seed: int, limit: int) -> None:
    async def play() -> None:
        rng, limiter, most = Random(seed), FixedLimit(limit), 0

        async def call() -> None:
            nonlocal most
            await limiter.acquire()
            try:
                most = max(most, limiter.active)
                for _ in range(rng.randrange(4)):
                    await asyncio.sleep(0)
            finally:
                limiter.release(healthy=True)

        calls = [asyncio.ensure_future(call()) for _ in range(40)]
        while not all(one.done() for one in calls):
            rng.choice(calls).cancel()
            await asyncio.sleep(0)
        assert (limiter.active, limiter.waiting) == (0, 0)
        assert most <= limit
        await asyncio.wait_for(limiter.acquire(), 1.0)

    asyncio.run(play())


def test_ten_thousand_wait_cheaply() -> None:
    async def play() -> float:
        limiter = FixedLimit(10)

        async def call() -> None:
            await limiter.acquire()
            await asyncio.sleep(0)
            limiter.release(healthy=True)

        loop = asyncio.get_running_loop()
        started = loop.time()
        await asyncio.gather(*[call() for _ in range(10_000)])
        return loop.time() - started

    assert asyncio.run(play()) < 3.0


def test_requests_per_minute(clock: Any) -> None:
    async def play() -> list[int]:
        limiter = FixedLimit(None, rpm=60, clock=clock)
        waiters, counts = enter(limiter, 10), []
        await settle()
        for _ in range(4):
            counts.append(sum(waiter.done() for waiter in waiters))
            await clock.advance(1.0)
        await clock.advance(60.0)
        assert all(waiter.done() for waiter in waiters)
        return counts

    assert asyncio.run(play()) == [1, 2, 3, 4]


def test_tokens_per_minute_are_corrected_by_what_was_used(clock: Any) -> None:
    async def play() -> None:
        limiter = FixedLimit(None, tpm=6000, clock=clock)  # 100 a second
        await limiter.acquire(1000)  # larger than a second's worth: served at once, then owed
        (waiter,) = enter(limiter, 1, 100)
        await clock.advance(1.0)
        assert not waiter.done()
        limiter.release(healthy=True, expected=1000, used=100)
        await settle()
        assert waiter.done()

    asyncio.run(play())


def saturate(limiter: AdaptiveLimit, rounds: int) -> None:
    """Calls that always fill the limit and always succeed."""
    for _ in range(rounds):
        limiter.active = limiter.limit
        limiter.release(healthy=True)


def test_adaptive_doubles_while_full_and_cuts_on_429_only(clock: Any) -> None:
    limiter = AdaptiveLimit(4, 8, 64, clock=clock)
    saturate(limiter, 8 + 16)
    assert limiter.limit == 32
    limiter.active = 1
    for _ in range(200):
        limiter.active += 1
        limiter.release(healthy=True)
    assert limiter.limit == 32, "a limit that is not used must not grow"
    limiter.active = 32
    limiter.release(healthy=False)
    assert limiter.limit == 32, "only a 429 cuts"
    limiter.throttled(None)
    limiter.throttled(None)
    assert limiter.limit == 25, "one cut for all calls of the same moment"
    saturate(limiter, 100)
    assert limiter.limit == 25, "no growth while cooling down"
    asyncio.run(clock.advance(16.0))
    saturate(limiter, 25)
    assert limiter.limit == 27, "after a cut it grows by a tenth"
    for _ in range(40):
        asyncio.run(clock.advance(16.0))
        limiter.throttled(None)
    assert limiter.limit == 4
    assert [limit for _, limit in limiter.history][:5] == [8, 16, 32, 25, 27]
    times = [at for at, _ in limiter.history]
    assert times == sorted(times)


def test_the_history_is_bounded(clock: Any) -> None:
    limiter = AdaptiveLimit(1, 50, 100, clock=clock)
    for _ in range(3000):
        asyncio.run(clock.advance(16.0))
        limiter.throttled(None)
        asyncio.run(clock.advance(16.0))
        saturate(limiter, limiter.limit)
    assert len(limiter.history) <= 1000


def test_retry_after_pauses_everybody(clock: Any) -> None:
    async def play() -> None:
        limiter = AdaptiveLimit(4, 8, 64, clock=clock)
        await limiter.acquire()
        limiter.throttled(10.0)
        limiter.release(healthy=False)
        waiters = enter(limiter, 3)
        await clock.advance(9.9)
        assert not any(waiter.done() for waiter in waiters)
        await clock.advance(0.2)
        assert all(waiter.done() for waiter in waiters)

    asyncio.run(play())


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 10_000), st.none() | st.floats(0, 1e6), st.integers(0, 99), st.floats(0, 120))
def test_a_wait_is_bounded(attempt: int, asked: float | None, seed: int, max_wait: float) -> None:
    wait = delay(attempt, asked, Random(seed), max_wait)
    assert 0.0 <= wait <= max_wait
    if asked is not None:
        assert wait >= min(asked, max_wait)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:40 GMT"}, 60.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}, 0.0),
        ({"retry-after": "x"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Thu, 99 Jan 99999 00:00:00 GMT"}, None),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({}, None),
    ],
)
def test_retry_after_headers(headers: dict[str, str], expected: float | None) -> None:
    assert retry_after(headers, now=40.0) == expected
