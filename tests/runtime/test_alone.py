"""`alone`: what somebody else's coroutine does to its task is not done to ours."""

from __future__ import annotations

import asyncio
import gc
import time
from typing import Any

import pytest

from runner.runtime.alone import DeadlinePassed, SelfCancelled, alone


async def returns(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


async def raises(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


def test_what_it_returns_and_raises() -> None:
    assert asyncio.run(alone(returns(3))) == 3
    assert asyncio.run(alone(returns(3), 1.0)) == 3
    with pytest.raises(KeyError):
        asyncio.run(alone(raises(KeyError("a")), 1.0))


def test_no_time_at_all() -> None:
    with pytest.raises(DeadlinePassed):
        asyncio.run(alone(asyncio.sleep(1), 0.0))


def test_its_own_timeout_error_is_no_deadline() -> None:
    with pytest.raises(TimeoutError):
        asyncio.run(alone(raises(TimeoutError("mine")), 1.0))


def test_blocked_past_its_deadline() -> None:
    async def blocks() -> int:
        time.sleep(0.1)  # noqa: ASYNC251 (the mistake this is about)
        return 3

    with pytest.raises(DeadlinePassed) as caught:
        asyncio.run(alone(blocks(), 0.01))
    assert caught.value.how == "blocked"
    assert "`asyncio.to_thread`" in caught.value.told


def test_one_that_is_only_slow() -> None:
    with pytest.raises(DeadlinePassed) as caught:
        asyncio.run(alone(asyncio.sleep(5), 0.01))
    assert (caught.value.how, caught.value.told) == ("", "")


def test_its_own_cancellation() -> None:
    async def cancels() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(1)

    with pytest.raises(SelfCancelled):
        asyncio.run(alone(cancels()))


async def stubborn() -> None:
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            continue


async def immortal() -> None:
    while True:
        try:
            await asyncio.sleep(0.2)
            return
        except BaseException:  # noqa: S112
            continue


def test_swallowed_for_ever() -> None:
    async def main() -> None:
        with pytest.raises(DeadlinePassed) as caught:
            await alone(stubborn(), 0.01, grace=0.05)
        assert caught.value.how == "swallowed"
        assert "`raise` it again" in caught.value.told
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_what_cannot_be_ended_is_abandoned_and_said_so() -> None:
    said: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: said.append(context))
        with pytest.raises(DeadlinePassed) as caught:
            await alone(immortal(), 0.01, grace=0.02)
        assert caught.value.how == "abandoned"
        gc.collect()
        await asyncio.sleep(0.3)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    gc.collect()
    assert said == []


def test_cancelled_from_outside_while_it_ignores_its_deadline() -> None:
    async def main() -> None:
        task = asyncio.create_task(alone(stubborn(), 0.01, grace=0.2))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())


def test_it_has_ended_before_a_cancellation_goes_on() -> None:
    log: list[str] = []

    async def cleans_up() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.02)
            log.append("clean")

    async def main() -> None:
        task = asyncio.create_task(alone(cleans_up()))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert log == ["clean"]

    asyncio.run(main())
