"""A rollout that somebody stopped is "cancelled", with the reason, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest

from runner.records.rollout import Outcome
from runner.runtime.pool import Pool
from runner.runtime.rollout import run_rollout

EXACT = '[graders.answer]\nkind = "exact"\n'

FILES = """
    import asyncio
    import time
    from contextlib import asynccontextmanager

    log = []

    @asynccontextmanager
    async def opened():
        log.append("open")
        yield log
        await asyncio.sleep(0.01)
        log.append("closed")

    @asynccontextmanager
    async def slow_close():
        yield log
        await asyncio.sleep(60)

    async def sleeps() -> str:
        '''Sleep.'''
        log.append("tool began")
        try:
            await asyncio.sleep(60)
        finally:
            log.append("tool ended")

    async def waits(ctx):
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            log.append("workflow ended")

    async def returns(ctx):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return [*ctx.prompt, {"role": "assistant", "content": "4"}]

    async def clings(ctx):
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(60)

    async def grades(ctx):
        await asyncio.sleep(60)
"""

RESOURCE = '[resources.log]\nopen = "./files.py:opened"\nscope = "rollout"\n'
TOOL = '[tools.sleeps]\ncall = "./files.py:sleeps"\n'


@pytest.fixture
def files(project: Any) -> Any:
    project.write("files.py", FILES)
    return project


def log_of(live: Any) -> list[str]:
    part = live.plan.rollout_resources[0]
    log: list[str] = part.open.__wrapped__.__globals__["log"]
    return log


async def stopped(project: Any, live: Any, reason: str = "shutdown", wait: float = 0.05, again: bool = False) -> Any:
    """One rollout in a pool that is cancelled after `wait`."""
    pool = Pool(2)
    outcomes: list[Outcome] = []

    async def play(attempt: int) -> None:
        outcomes.append(await run_rollout(live, live.plan.request(project.row(), attempt)))
        await asyncio.wait_for(asyncio.sleep(0), 1)  # what a journal does: the task must be usable again

    def cancel() -> None:
        pool.cancel(reason)
        if again:
            pool.cancel("another reason")

    asyncio.get_running_loop().call_later(wait, cancel)
    await asyncio.wait_for(pool.run(range(5), play), 10)
    assert pool.running == 0
    return outcomes


@pytest.mark.parametrize("reason", ["cancelled", "shutdown", "budget"])
@pytest.mark.parametrize("agent", ["waits", "returns"])
def test_the_reason_is_the_stop_reason(files: Any, agent: str, reason: str) -> None:
    async def main() -> None:
        async with files.open(EXACT + RESOURCE, workflow=f'agent = "./files.py:{agent}"') as live:
            outcomes = await stopped(files, live, reason, again=True)
            assert [(each.status, each.stop_reason, each.reward) for each in outcomes] == [
                ("cancelled", reason, None)
            ] * 2
            assert outcomes[0].failure is None
            assert outcomes[0].sample.messages == ({"role": "user", "content": "2+2?"},)
            assert log_of(live).count("closed") == 2

    asyncio.run(main())


def test_the_tools_of_a_cancelled_rollout_have_ended(files: Any) -> None:
    async def main() -> None:
        call = ("sleeps", "{}")
        async with files.open(EXACT + RESOURCE + TOOL, files.says(None, call, call, call)) as live:
            outcomes = await stopped(files, live)
            assert {each.status for each in outcomes} == {"cancelled"}
            assert log_of(live).count("tool began") == log_of(live).count("tool ended") == 6
            assert outcomes[0].sample.messages[-1]["role"] == "assistant"

    asyncio.run(main())


def test_cancelled_while_it_is_graded(files: Any) -> None:
    graders = '[graders.mine]\nkind = "python"\ncall = "./files.py:grades"\n'

    async def main() -> None:
        async with files.open(EXACT + RESOURCE + graders) as live:
            outcomes = await stopped(files, live)
            assert {(each.status, each.reward) for each in outcomes} == {("cancelled", None)}
            assert log_of(live).count("closed") == 2

    asyncio.run(main())


def test_a_workflow_that_clings_to_its_life_is_ended(files: Any) -> None:
    async def main() -> None:
        async with files.open(EXACT, workflow='agent = "./files.py:clings"') as live:
            outcomes = await stopped(files, live)
            assert {each.status for each in outcomes} == {"cancelled"}

    asyncio.run(main())


def test_a_plain_cancellation_is_passed_on(files: Any) -> None:
    async def main() -> None:
        async with files.open(EXACT + RESOURCE, workflow='agent = "./files.py:waits"') as live:
            task = asyncio.create_task(run_rollout(live, live.plan.request(files.row(), 0)))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert log_of(live) == ["open", "workflow ended", "closed"]

    asyncio.run(main())


def test_a_second_cancellation_cuts_the_clean_up_short(files: Any) -> None:
    slow = '[resources.log]\nopen = "./files.py:slow_close"\nscope = "rollout"\n'

    async def main() -> None:
        async with files.open(EXACT + slow) as live:
            pool = Pool(1)
            outcomes: list[Outcome] = []

            async def play(attempt: int) -> None:
                outcomes.append(await run_rollout(live, live.plan.request(files.row(), attempt)))
                await asyncio.wait_for(asyncio.sleep(0), 1)

            running = asyncio.create_task(pool.run([0], play))
            await asyncio.sleep(0.05)
            running.cancel()
            await asyncio.sleep(0.05)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(running, 5)
            assert [(each.status, each.stop_reason) for each in outcomes] == [("cancelled", "cancelled")]

    asyncio.run(main())


def test_nothing_is_left_behind(files: Any) -> None:
    """No task destroyed while pending, no exception that nobody heard."""
    said: list[str] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: said.append(context["message"]))
        call = ("sleeps", "{}")
        async with files.open(EXACT + RESOURCE + TOOL, files.says(None, call, call)) as live:
            await stopped(files, live)
        for agent in ("waits", "returns", "clings"):
            async with files.open(EXACT, workflow=f'agent = "./files.py:{agent}"') as live:
                await stopped(files, live)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    gc.collect()
    assert said == []


def test_a_drained_pool_lets_what_runs_end(files: Any) -> None:
    async def main() -> None:
        async with files.open(EXACT) as live:
            pool = Pool(3)
            outcomes: list[Outcome] = []

            async def play(attempt: int) -> None:
                if attempt == 4:
                    pool.drain()
                outcomes.append(await run_rollout(live, live.plan.request(files.row(), attempt)))

            await pool.run(range(100), play)
            assert {each.status for each in outcomes} == {"scored"}
            assert 5 <= len(outcomes) < 10

    asyncio.run(main())
