"""`SandboxPool`: the sandboxes of one section. At most so many are alive, and whoever waits is served in turn.

A sandbox is never used twice: what a rollout left in it is nobody else's. Warm ones are made ahead and have not been
prepared yet, because copies and setup may depend on the row. Tasks that make and stop sandboxes are the pool's own and
belong to no rollout: a cancelled one takes nothing with it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextvars import Context
from typing import Any, Literal, TypeAlias

from runner.records.failure import SandboxError
from runner.sandboxes.sandbox import Sandbox, SandboxMaker

Prepare: TypeAlias = Callable[[Sandbox, Mapping[str, Any]], Awaitable[None]]
"""Copies and setup commands for a row. Raises `SandboxError`."""

CLOSE_SECONDS = 30.0
"""How long the sandboxes that are left may take to stop when the run ends."""


async def _unprepared(sandbox: Sandbox, row: Mapping[str, Any]) -> None:
    """Nothing to copy and nothing to set up."""


class SandboxPool:
    """Made by the plan when it opens. `most` is how many are alive at once, None for no bound; `warm` are kept ready.

    With the scope "run" there is one sandbox for all rollouts, made when it is first asked for, and again when it was
    lost.
    """

    def __init__(
        self,
        name: str,
        maker: SandboxMaker,
        *,
        most: int | None = None,
        warm: int = 0,
        scope: Literal["run", "rollout"] = "rollout",
        prepare: Prepare = _unprepared,
    ) -> None:
        self.name = name
        self.kind = maker.kind
        self._maker = maker
        self._most = most
        self._warm = warm if most is None else min(warm, most)
        self._shared = scope == "run"
        self._prepare = prepare
        self._ready: deque[asyncio.Task[Sandbox]] = deque()
        self._alive = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._common: asyncio.Task[Sandbox] | None = None
        self._closed = False

    async def open(self) -> Sequence[str]:
        """Ask what the machine can give, and begin to make the warm ones. Returns the sentences of the probe.

        Raises `SandboxError` (kind "sandbox_unavailable").
        """
        said = await self._maker.probe()
        self._warm_up()
        return said

    async def take(self, label: str, row: Mapping[str, Any]) -> Sandbox:
        """A sandbox, prepared for `row`; give it back with `give_back`. Raises `SandboxError`."""
        return await (self._take_common() if self._shared else self.take_fresh(label, row))

    async def take_fresh(self, label: str, row: Mapping[str, Any]) -> Sandbox:
        """One that nobody has used, whatever the scope; it goes back with `give_back_fresh`. Raises `SandboxError`."""
        preparing = self._task(self._prepared(await self._next(label), row))
        try:
            return await asyncio.shield(preparing)
        except asyncio.CancelledError:
            preparing.add_done_callback(self._unwanted)
            preparing.cancel()
            raise

    def give_back(self, sandbox: Sandbox) -> None:
        """It is done with. One for the whole run stays."""
        if not self._shared:
            self.give_back_fresh(sandbox)

    def give_back_fresh(self, sandbox: Sandbox) -> None:
        """It is done with: stopped at once, its place free when it is gone."""
        self._task(self._stop(sandbox))

    def lost(self, sandbox: Sandbox) -> None:
        """`sandbox` answered with a `SandboxError`: if it is everybody's, the next to ask gets a new one."""
        common = self._common
        if common is not None and _result(common) is sandbox:
            self._common = None
            self._task(self._stop(sandbox))

    async def aclose(self) -> None:
        """Stop every sandbox and whatever is being made. Nobody is served any more."""
        self._closed = True
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)
        ready = [*self._ready, *([self._common] if self._common is not None else [])]
        self._ready.clear()
        self._common = None
        for making in ready:
            self._task(self._drop(making))
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_SECONDS)
        await self._maker.aclose()

    def _task(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        # An empty context: a process started on behalf of the pool must not be taken for one of the tool that asked.
        task = asyncio.get_running_loop().create_task(work, context=Context())
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        return task

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waits for it has it; a warm one that failed is made again when it is needed

    def _make(self, label: str) -> asyncio.Task[Sandbox]:
        return self._task(self._maker.make(label))

    def _warm_up(self) -> None:
        """Keep as many ready as places allow, but never at the cost of somebody who waits for one."""
        while not self._closed and not self._waiting and len(self._ready) < self._warm and self._has_place():
            self._alive += 1
            self._ready.append(self._make(f"{self.name}-warm"))

    def _has_place(self) -> bool:
        return self._most is None or self._alive < self._most

    async def _next(self, label: str) -> asyncio.Task[Sandbox]:
        """A sandbox being made, with a place of its own: first come, first served."""
        if self._closed:
            raise self._ended()
        if not self._waiting and self._ready:
            making = self._ready.popleft()
            # One that failed when nobody needed it is tried again in its place.
            failed = making.done() and (making.cancelled() or making.exception() is not None)
            return self._make(label) if failed else making
        if not self._waiting and self._has_place():
            self._alive += 1
            return self._make(label)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._free()  # it was our turn in that very moment
            else:
                self._waiting.remove(turn)
            raise
        if self._closed:
            raise self._ended()
        return self._make(label)

    def _free(self) -> None:
        """A place came free: it goes to the first who waits, or to a warm one."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._alive -= 1
        self._warm_up()

    async def _prepared(self, making: asyncio.Task[Sandbox], row: Mapping[str, Any]) -> Sandbox:
        try:
            sandbox = await asyncio.shield(making)
        except asyncio.CancelledError:
            self._task(self._drop(making))
            raise
        except BaseException:
            self._free()
            raise
        self._warm_up()
        try:
            await self._prepare(sandbox, row)
        except BaseException:
            self._task(self._stop(sandbox))
            raise
        return sandbox

    def _unwanted(self, preparing: asyncio.Task[Sandbox]) -> None:
        """Whoever asked has gone; what was ready in that very moment is stopped."""
        if not preparing.cancelled() and preparing.exception() is None:
            self._task(self._stop(preparing.result()))

    async def _take_common(self) -> Sandbox:
        if self._closed:
            raise self._ended()
        if self._common is None or (self._common.done() and self._common.exception() is not None):
            self._alive += 1
            self._common = self._task(self._prepared(self._make(self.name), {}))
        return await asyncio.shield(self._common)

    async def _drop(self, making: asyncio.Task[Sandbox]) -> None:
        """Stop what comes of `making`, which nobody waits for any more."""
        try:
            sandbox = await making
        except BaseException:
            self._free()  # there is nothing to stop, and whoever asked has gone
            return
        await self._stop(sandbox)

    async def _stop(self, sandbox: Sandbox) -> None:
        try:
            await sandbox.stop()
        finally:
            self._free()

    def _ended(self) -> SandboxError:
        return SandboxError(f"sandbox {self.name!r}: the run has ended", kind="sandbox_lost")


def _result(task: asyncio.Task[Sandbox]) -> Sandbox | None:
    """What a task has made; None before, and where it failed."""
    return task.result() if task.done() and not task.cancelled() and task.exception() is None else None
