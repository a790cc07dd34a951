"""The sandboxes of one rollout: a handle for each section, started at first use, stopped when its agent has ended.

They stop before anything is graded: what the agent left running cannot meddle with it, the places they take are free
for the fresh ones that graders ask for, and grading again later sees no less than grading now.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from time import monotonic
from types import MappingProxyType
from typing import Any

from runner.build.live import Live
from runner.records.completion import Caller
from runner.records.event import Listener, Logged
from runner.records.failure import GraderError, SandboxError
from runner.runtime.boundary import failure_of
from runner.sandboxes.handle import FreshSandbox, SandboxHandle
from runner.sandboxes.pool import SandboxPool
from runner.sandboxes.sandbox import Sandbox
from runner.sandboxes.watched import WatchedSandbox
from runner.tools.tool import ToolScope

CLOSER_SECONDS = 10.0
"""How long one closer of a tool may take."""

_NONE: Mapping[str, SandboxHandle] = MappingProxyType({})

Lost = Callable[[SandboxError], None]


class LazySandbox:
    """A `SandboxHandle`: all who ask wait for the same start."""

    def __init__(self, pool: SandboxPool, caller: Caller, tell: Listener) -> None:
        self._pool = pool
        self._caller = caller
        self._tell = tell
        self._taking: asyncio.Task[WatchedSandbox] | None = None
        self._taken: Sandbox | None = None
        self._closed = False
        self.heard: Lost = lambda error: None
        """Told of every `SandboxError`, whoever swallows it."""

    @property
    def name(self) -> str:
        return self._pool.name

    @property
    def started(self) -> bool:
        return self._taking is not None

    async def get(self) -> Sandbox:
        if self._closed:
            raise SandboxError(f"sandbox {self.name!r}: the rollout has ended", kind="sandbox_lost")
        if self._taking is None:
            # In a task of the rollout: one caller that gives up must not take the sandbox from the others.
            self._taking = asyncio.get_running_loop().create_task(self._take())
        try:
            return await asyncio.shield(self._taking)
        except SandboxError as error:
            self.heard(error)
            raise

    async def _take(self) -> WatchedSandbox:
        started = monotonic()
        sandbox = self._taken = await self._pool.take(self._caller.rollout_id, self._caller.row)
        data = {"sandbox": self.name, "kind": self._pool.kind, "seconds": round(monotonic() - started, 6)}
        self._tell(Logged(self._caller.rollout_id, monotonic(), "sandbox_started", data))
        return WatchedSandbox(sandbox, lambda error: self._lost(sandbox, error))

    def _lost(self, sandbox: Sandbox, error: SandboxError) -> None:
        self._pool.lost(sandbox)
        if not self._closed:
            self.heard(error)

    async def aclose(self) -> None:
        """Give the sandbox back, or give up waiting for it."""
        self._closed = True
        taking = self._taking
        if taking is None:
            return
        if not taking.done():
            taking.cancel()
        await asyncio.wait({taking})
        if not taking.cancelled():
            taking.exception()
        if self._taken is not None:
            self._pool.give_back(self._taken)
            self._taken = None


@asynccontextmanager
async def open_scope(
    live: Live, caller: Caller, resources: Mapping[str, Any], tell: Listener
) -> AsyncIterator[ToolScope]:
    """What the tools of one rollout are handed. When the block ends, closers run, then its sandboxes stop.

    A closer that fails is told as the event "tool_close_failed": what the rollout did before stands.
    """
    handles = {name: LazySandbox(pool, caller, tell) for name, pool in live.sandboxes.items()} if live.sandboxes else {}
    scope = ToolScope(caller, resources, handles or _NONE, ask=live.ask)
    try:
        yield scope
    finally:
        try:
            await _close(scope, tell)
        finally:
            for handle in handles.values():
                await handle.aclose()


async def _close(scope: ToolScope, tell: Listener) -> None:
    while scope.closers:
        closer = scope.closers.pop()
        try:
            async with asyncio.timeout(CLOSER_SECONDS):
                await closer()
        except Exception as error:
            failure = failure_of(error, "tool", "tool_close_failed")
            tell(Logged(scope.caller.rollout_id, monotonic(), "tool_close_failed", failure.to_json()))


def hear_losses(scope: ToolScope, heard: Lost) -> None:
    """Have `heard` told of every `SandboxError` of the scope's sandboxes, from now on."""
    for handle in scope.sandboxes.values():
        if isinstance(handle, LazySandbox):
            handle.heard = heard


def fresh_sandboxes(live: Live, caller: Caller) -> FreshSandbox:
    """Sandboxes for graders, of the same sections and for the same row, each for the time of a block."""

    @asynccontextmanager
    async def fresh(name: str) -> AsyncIterator[Sandbox]:
        pool = live.sandboxes.get(name)
        if pool is None:
            raise GraderError(f"there is no sandbox {name!r}", kind="grader_error")
        sandbox = await pool.take_fresh(f"{caller.rollout_id}/grading", caller.row)
        try:
            yield sandbox
        finally:
            pool.give_back_fresh(sandbox)

    return fresh
