"""A rollout's view of the built-in tools: a sandbox of each kind that this machine has, and a scope around it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from runner.records.completion import Caller
from runner.sandboxes.bubblewrap import BubblewrapMaker
from runner.sandboxes.local_maker import LocalOptions
from runner.sandboxes.none import NoneMaker
from runner.sandboxes.sandbox import Sandbox, SandboxMaker
from runner.tools.tool import ToolScope

KINDS = {"none": NoneMaker, "bubblewrap": BubblewrapMaker}


class Handle:
    """The sandbox of one rollout, there from the start."""

    name = "work"
    started = True

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def get(self) -> Sandbox:
        return self._sandbox


class Bench:
    """`run` plays a test with a sandbox and a scope of its own, and closes what the test has opened."""

    def __init__(self, maker: SandboxMaker) -> None:
        self._maker = maker

    def run(self, test: Callable[[Sandbox, ToolScope], Awaitable[Any]]) -> Any:
        return asyncio.run(self._run(test))

    async def _run(self, test: Callable[[Sandbox, ToolScope], Awaitable[Any]]) -> Any:
        sandbox = await self._maker.make("test")
        scope = ToolScope(Caller("r"), sandboxes={"work": Handle(sandbox)})
        try:
            return await test(sandbox, scope)
        finally:
            for close in reversed(scope.closers):
                await close()
            await sandbox.stop()
            await self._maker.aclose()


@pytest.fixture(params=KINDS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    if request.param == "bubblewrap" and shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed here")
    yield Bench(KINDS[request.param](LocalOptions(time=20.0)))


@pytest.fixture
def plain() -> Bench:
    """For what does not depend on the kind of sandbox."""
    return Bench(NoneMaker(LocalOptions(time=20.0)))
