"""The chores of a worker: what goes on beside the rollouts for as long as it is open."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from time import time
from typing import TYPE_CHECKING

from runner.config.serve import ServeSection
from runner.serve.engine import Engine
from runner.serve.summary import Summary, line_of
from runner.serve.watching import Watching
from runner.store.errors import StoreError
from runner.store.outbox import Outbox

if TYPE_CHECKING:
    from runner.serve.workers.crew import Crew

_TICK = 0.5
"""Seconds between two looks at who waits too long."""

log = logging.getLogger(__name__)


def chores_of(
    section: ServeSection, engine: Engine, outbox: Outbox, watching: Watching
) -> list[Callable[[], Awaitable[None]]]:
    """What has to be looked after all the time."""

    async def expire() -> None:
        while True:
            await asyncio.sleep(_TICK)
            await engine.expire()

    async def sweep() -> None:
        while True:
            await asyncio.sleep(section.cleanup_interval)
            try:
                await outbox.sweep(time() - section.record_ttl)
            except StoreError as error:
                log.warning("ended rollouts are not forgotten yet: %s", error)

    chores: list[Callable[[], Awaitable[None]]] = [expire, sweep]
    return chores if watching.metrics is None else [*chores, watching.metrics.watch_loop]


async def summarise(summary: Summary, crew: Crew | None) -> None:
    """Say in one line what this worker, or all of a crew, have done lately."""
    parts = [summary.take()] if crew is None else await crew.summaries()
    if line := line_of(parts):
        log.info("%s", line)


async def again(chore: Callable[[], Awaitable[None]], seconds: float) -> None:
    """Do it every so many seconds, for ever."""
    while True:
        await asyncio.sleep(seconds)
        await chore()


def keep_up(stack: AsyncExitStack, chore: Callable[[], Awaitable[None]]) -> None:
    """Have it go on until the stack is closed; that it ended by itself is an error in the log."""
    task = asyncio.ensure_future(chore())
    task.add_done_callback(_mourn)

    async def end() -> None:
        task.cancel()
        await asyncio.wait({task})

    stack.push_async_callback(end)


def _mourn(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("a chore of the server has ended: what it looked after is not looked after any more", exc_info=error)
