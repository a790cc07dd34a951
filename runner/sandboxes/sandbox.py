"""`Sandbox`: a place of one rollout's own where commands run and files lie, whatever holds it.

Paths are POSIX texts as the inside sees them; a relative one counts from `workdir`. Nothing here raises for what a
command did: that is its `Ran`. `SandboxError` means that the place itself is gone or cannot do what was asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal, Protocol

MAX_OUTPUT = 1 << 20
"""Bytes kept of each stream of a command where nobody asks for more or less: the head and the tail of a longer one."""

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Command:
    """What to run. `argv` is run as it is, without a shell; `timeout` is in seconds, None for the sandbox's own.

    `env` comes on top of the sandbox's variables. Of each stream at most `max_output` bytes are kept.
    """

    argv: Sequence[str]
    stdin: bytes = b""
    cwd: str = ""
    env: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    timeout: float | None = None
    max_output: int = MAX_OUTPUT


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended. `code` is its exit code, 128 + N when signal N killed it.

    `timed_out`: it was killed, with everything it started, when its time was over. `out_of_memory`: the limit on memory
    killed something in it. `dropped_out` and `dropped_err` count the bytes cut from the middle of a stream.
    """

    code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    timed_out: bool = False
    out_of_memory: bool = False
    dropped_out: int = 0
    dropped_err: int = 0


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in a folder. `size` is in bytes; a symbolic link is told as one, and not followed."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    size: int = 0


class Running(Protocol):
    """A command that goes on: a shell that keeps its state, a server.

    `read` gives what came since, of stdout and stderr together, b"" when the command has ended.
    """

    async def write(self, data: bytes) -> None:
        """Raises `BrokenPipeError` when the command has ended."""
        ...

    async def read(self) -> bytes: ...

    async def wait(self) -> int:
        """The exit code, when everything was read. Raises `SandboxError` when nobody can know it any more."""
        ...

    async def kill(self) -> None:
        """Kill the command and everything it started. Returns when they are gone; no fault if they already were."""
        ...


class Sandbox(Protocol):
    """One rollout's sandbox, shared by its tools. Safe for calls at the same time.

    `put`, `get`, `list` and `remove` reach what lies under `workdir`, /tmp and the mounts (those to be written, for
    `put` and `remove`): a path that leads anywhere else, by `..` or by a symbolic link that was planted inside, is a
    `PermissionError`. Every method raises `SandboxError` (kind "sandbox_lost") when the sandbox is gone, within seconds
    of it.
    """

    @property
    def workdir(self) -> str:
        """The folder commands start in, absolute."""
        ...

    async def exec(self, command: Command) -> Ran:
        """Run a command to its end. When its time is over, it and all that it started are killed."""
        ...

    async def start(self, command: Command) -> Running:
        """Start a command that goes on until it ends, is killed, or the sandbox stops. Its `timeout` is not used."""
        ...

    async def put(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        """Write a whole file, atomically; folders above it are made. Raises `OSError` as a local write would.

        Without `mode` a file keeps what it has, and a new one gets 0o644.
        """
        ...

    async def get(self, path: str, *, limit: int | None = None) -> bytes:
        """A whole file, or its first `limit` bytes. Raises `OSError` as a local read would (`FileNotFoundError`)."""
        ...

    async def list(self, path: str = ".") -> list[Entry]:
        """What a folder holds, by name. Raises `OSError` as a local listing would."""
        ...

    async def remove(self, path: str) -> None:
        """Remove a file, or a folder that is empty. Raises `OSError` as a local removal would."""
        ...

    async def stop(self) -> None:
        """Kill everything in it and remove it. Never raises for a sandbox that is already gone."""
        ...


class SandboxMaker(Protocol):
    """One `[sandboxes.NAME]` section, built: it makes sandboxes that are all alike."""

    @property
    def kind(self) -> str:
        """`none`, `bubblewrap`, `podman`, `docker`, `kubernetes`."""
        ...

    async def probe(self) -> Sequence[str]:
        """What this machine cannot give of what was asked, as sentences: said once, when a run begins.

        Raises `SandboxError` (kind "sandbox_unavailable") when no sandbox of this kind can be had here at all.
        """
        ...

    async def make(self, name: str) -> Sandbox:
        """A fresh one. `name` is a label for people. Raises `SandboxError`."""
        ...

    async def aclose(self) -> None:
        """Nothing of it is left behind. Called once, when the run ends."""
        ...
