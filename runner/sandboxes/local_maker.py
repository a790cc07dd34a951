"""`LocalMaker`: makes sandboxes on this machine, and removes what earlier runs that were killed have left."""

from __future__ import annotations

import asyncio
import re
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from runner.records.failure import SandboxError
from runner.sandboxes.asked import NO_LIMITS, Limits, Mount
from runner.sandboxes.limits import NO_HIERARCHY, Group, Hierarchy, find_hierarchy, reap_groups
from runner.sandboxes.local import LocalSandbox, Place
from runner.sandboxes.owner import leave_folder, owned_folder, reap_folders

_NO_ENV: Mapping[str, str] = {}
_NO_MOUNTS: Mapping[str, Mount] = {}


@dataclass(frozen=True, slots=True)
class LocalOptions:
    """What a section of `[sandboxes]` asks of a sandbox on this machine.

    `time` is of one command, in seconds; `env` all its variables but our few; `mounts` by the absolute path inside;
    `user` and `group` who it is inside.
    """

    limits: Limits = NO_LIMITS
    time: float = 60.0
    env: Mapping[str, str] = field(default_factory=lambda: _NO_ENV)
    network: bool = False
    workdir: str = "/workspace"
    mounts: Mapping[str, Mount] = field(default_factory=lambda: _NO_MOUNTS)
    user: int = 1000
    group: int = 1000


class LocalMaker(ABC):
    """One section, built. `control_groups=False` does without them even where they are."""

    kind: ClassVar[str]

    def __init__(self, options: LocalOptions, *, control_groups: bool = True) -> None:
        self.options = options
        self.hierarchy: Hierarchy = NO_HIERARCHY
        self._control_groups = control_groups
        self._probed = False
        self._alive: set[LocalSandbox] = set()

    @abstractmethod
    def build(self, place: Place, forget: Callable[[LocalSandbox], None]) -> LocalSandbox:
        """The sandbox on a place that was made for it. Blocks, shortly."""

    async def probe(self) -> Sequence[str]:
        """What the limits come to here. Removes what dead runs have left."""
        self._probed = True
        await asyncio.to_thread(self._prepare)
        return self.missing_limits()

    def missing_limits(self) -> list[str]:
        """What nothing here can hold of what was asked, or is the default, as sentences."""
        limits, has = self.options.limits, self.hierarchy.has
        lacking = [name for name, controller in (("memory", "memory"), ("processes", "pids")) if not has(controller)]
        if limits.cpus is not None and not has("cpu"):
            lacking.append("processors")
        if not lacking:
            return []
        return [f"no control group can be made here, so nothing limits its {' and '.join(lacking)}"]

    async def make(self, name: str) -> LocalSandbox:
        if not self._probed:
            await self.probe()
        try:
            sandbox = await asyncio.to_thread(self._make, name)
        except OSError as error:
            raise SandboxError(f"no sandbox can be made: {error}", kind="sandbox_unavailable") from error
        self._alive.add(sandbox)
        return sandbox

    async def aclose(self) -> None:
        await asyncio.gather(*(sandbox.stop() for sandbox in list(self._alive)))
        await asyncio.to_thread(leave_folder)

    def _prepare(self) -> None:
        reap_folders()
        if self._control_groups:
            self.hierarchy = find_hierarchy()
            reap_groups(self.hierarchy)

    def _make(self, name: str) -> LocalSandbox:
        unique = f"{re.sub(r'[^A-Za-z0-9_.]+', '_', name)[:40]}-{secrets.token_hex(4)}"
        group = Group(self.hierarchy, unique, self.options.limits) if self.hierarchy.folders else None
        folder = owned_folder() / unique
        try:
            folder.mkdir(mode=0o700)
            return self.build(Place(unique, folder, group), self._alive.discard)
        except BaseException:
            if group is not None:
                group.remove()
            raise
