"""`SandboxHandle`: a section of `[sandboxes]` as one rollout sees it: nothing runs until somebody asks for it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

from runner.sandboxes.sandbox import Sandbox


class SandboxHandle(Protocol):
    """The sandbox of one rollout, started at first use. All tools and the agent of the rollout get the same one."""

    @property
    def name(self) -> str:
        """The section's."""
        ...

    @property
    def started(self) -> bool:
        """Whether somebody has got it already: what was never started has nothing worth looking at."""
        ...

    async def get(self) -> Sandbox:
        """The sandbox: from the pool, with its copies made and its setup done.

        Waits while as many are alive as the section allows. Raises `SandboxError`: it cannot be had, a copy or a setup
        command failed, or the rollout has ended.
        """
        ...


FreshSandbox: TypeAlias = Callable[[str], AbstractAsyncContextManager[Sandbox]]
"""By a section's name, a sandbox of its own for as long as the block: copies made, setup done. `SandboxError`."""
