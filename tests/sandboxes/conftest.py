"""Sandboxes of the kinds that hold things apart here; what this machine cannot run is skipped, with its reason."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from runner.records.failure import SandboxError
from runner.sandboxes.bubblewrap import BubblewrapMaker
from runner.sandboxes.limits import NO_HIERARCHY, find_hierarchy
from runner.sandboxes.local import LocalSandbox
from runner.sandboxes.local_maker import LocalMaker, LocalOptions
from runner.sandboxes.none import NoneMaker
from runner.sandboxes.sandbox import Command, Ran, Sandbox

KINDS: dict[str, type[LocalMaker]] = {"none": NoneMaker, "bubblewrap": BubblewrapMaker}


@asynccontextmanager
async def opened(kind: str, options: LocalOptions | None = None, **more: Any) -> AsyncIterator[LocalSandbox]:
    """A sandbox of a kind; nothing of it is left when the block ends."""
    maker = KINDS[kind](options or LocalOptions(), **more)
    try:
        await maker.probe()
        yield await maker.make("test")
    finally:
        await maker.aclose()


async def sh(sandbox: Sandbox, text: str, **more: Any) -> Ran:
    """A shell command in a sandbox, with 20 s unless it says otherwise."""
    return await sandbox.exec(Command(["/bin/sh", "-c", text], **{"timeout": 20.0, **more}))


def play(kind: str, work: Callable[[LocalSandbox], Awaitable[None]], options: LocalOptions | None = None) -> None:
    """Do `work` with a fresh sandbox of a kind."""

    async def main() -> None:
        async with opened(kind, options) as sandbox:
            await work(sandbox)

    asyncio.run(main())


def _missing_bubblewrap() -> str:
    async def look() -> str:
        maker = BubblewrapMaker(LocalOptions())
        try:
            await maker.probe()
        except SandboxError as error:
            return str(error)
        finally:
            await maker.aclose()
        return ""

    return asyncio.run(look())


_MISSING = {"bubblewrap": _missing_bubblewrap(), "none": ""}
_GROUPS = find_hierarchy() is not NO_HIERARCHY

needs_bubblewrap = pytest.mark.skipif(bool(_MISSING["bubblewrap"]), reason=f"bubblewrap: {_MISSING['bubblewrap']}")
needs_groups = pytest.mark.skipif(not _GROUPS, reason="no control group can be made on this machine")


@pytest.fixture(params=["none", pytest.param("bubblewrap", marks=needs_bubblewrap)])
def kind(request: pytest.FixtureRequest) -> str:
    """Each kind on this machine."""
    return str(request.param)
