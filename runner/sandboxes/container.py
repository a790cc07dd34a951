"""`ContainerSandbox`: one container that waits, and `exec` for each command.

Killing the client would leave a command running inside, so each is found there by a mark in its environment. Whether
an odd exit code is the command's or the death of the container is asked, never guessed.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from runner.records.failure import SandboxError
from runner.sandboxes.asked import NO_LIMITS, Limits, Mount
from runner.sandboxes.capture import Capture
from runner.sandboxes.client import Client, variables
from runner.sandboxes.owner import MARK
from runner.sandboxes.process import Process, exit_code
from runner.sandboxes.running import ProcessRunning
from runner.sandboxes.sandbox import Command, Entry, Ran, Running
from runner.sandboxes.shell_files import ShellFiles

_TMP = "/tmp"  # noqa: S108 (inside the container)
_SUSPECT = (125, 126, 127, 137, 255)
"""Codes that the command line also answers with when the container is not there."""

_KILL = (
    'n=0; while [ $n -lt 20 ]; do found=; for p in /proc/[0-9]*; do grep -qs -- "$1" "$p/environ" && '
    '{ kill -9 "${p#/proc/}" && found=1; } 2>/dev/null; done; [ -n "$found" ] || exit 0; n=$((n+1)); done'
)
_OOMS = "cat /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control 2>/dev/null | grep '^oom_kill '"
_KILL_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class ContainerOptions:
    """What a section asks of a container. `program` is `podman`, `docker`, or a path to one that speaks alike."""

    program: str
    image: str
    limits: Limits = NO_LIMITS
    time: float = 60.0
    env: Mapping[str, str] = field(default_factory=dict)
    network: bool = False
    workdir: str = "/workspace"
    mounts: Mapping[str, Mount] = field(default_factory=dict)
    user: str | None = None
    more: Sequence[str] = ()
    """Further words of `run`."""


class ContainerSandbox:
    """One container, by its name. `forget` is told when it is gone."""

    def __init__(
        self, name: str, options: ContainerOptions, client: Client, forget: Callable[[ContainerSandbox], None]
    ) -> None:
        self.name = name
        self._options = options
        self._client = client
        self._forget = forget
        self._numbers = count()
        self._stopped = False
        self._ooms = 0
        self._running: set[Process] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._files = ShellFiles(self.exec, options.workdir, [options.workdir, _TMP, *options.mounts])

    @property
    def workdir(self) -> str:
        return self._options.workdir

    async def exec(self, command: Command) -> Ran:
        started = time.monotonic()
        streams = {"out": Capture(command.max_output), "err": Capture(command.max_output)}
        process, mark = self._begin(command, lambda stream, data: streams[stream].add(data), bool(command.stdin), False)
        try:
            process.feed(command.stdin, close=True)
            limit = self._options.time if command.timeout is None else command.timeout
            timed_out = await self._is_late(process, mark, limit)
            await process.drained()
            out, err = streams["out"], streams["err"]
            code = exit_code(await process.exited())
        finally:
            self._running.discard(process)
            process.signal(signal.SIGKILL)
            process.close()
        if timed_out:
            code = 128 + signal.SIGKILL
        elif code in _SUSPECT or err.kept()[:5] == b"Error":
            await self._check()
        hungry = code == 128 + signal.SIGKILL and not timed_out and await self._was_hungry()
        seconds = time.monotonic() - started
        return Ran(code, out.kept(), err.kept(), seconds, timed_out, hungry, out.dropped, err.dropped)

    async def start(self, command: Command) -> Running:
        running = ProcessRunning()
        process, mark = self._begin(command, running.heard, True, True)
        process.feed(command.stdin)
        running.begin(process, lambda: self._later(self._kill(process, mark)))
        self._later(self._after(running, process))
        return running

    async def put(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        await self._files.put(path, data, mode=mode)

    async def get(self, path: str, *, limit: int | None = None) -> bytes:
        return await self._files.get(path, limit=limit)

    async def list(self, path: str = ".") -> list[Entry]:
        return await self._files.list(path)

    async def remove(self, path: str) -> None:
        await self._files.remove(path)

    async def stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        for process in list(self._running):
            process.signal(signal.SIGKILL)
        with suppress(SandboxError):  # the label says whose it is: the next run removes it
            await self._client.ask(["rm", "-f", self.name])
        self._forget(self)

    def _begin(
        self, command: Command, heard: Callable[[Literal["out", "err"], bytes], None], stdin: bool, merged: bool
    ) -> tuple[Process, str]:
        if self._stopped:
            raise self._lost("it has been stopped")
        mark = f"{MARK}={self.name}/{next(self._numbers)}"
        given, env = variables({**command.env, MARK: mark.removeprefix(f"{MARK}=")})
        cwd = command.cwd if command.cwd.startswith("/") else f"{self.workdir}/{command.cwd}".rstrip("/")
        words = ["exec", *(["-i"] if stdin else []), "-w", cwd, *given, self.name]
        # Through a shell, which tells a program that is not there from a container that is not there.
        words += ["/bin/sh", "-c", 'exec "$@"', "sh", *command.argv]
        try:
            process = Process(self._client.start(words, env, merged=merged), heard)
        except OSError as error:
            raise self._lost(f"`{self._client.program}` cannot be started: {error}") from error
        self._running.add(process)
        return process, f"{mark}"

    async def _is_late(self, process: Process, mark: str, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await process.exited()
            return False
        except TimeoutError:
            await self._kill(process, mark)
            return True
        except asyncio.CancelledError:
            self._later(self._kill(process, mark))
            raise

    async def _kill(self, process: Process, mark: str) -> None:
        """Kill what carries the mark, inside; where no process can be made for that, everything in the container."""
        words = ["exec", self.name, "/bin/sh", "-c", _KILL, "sh", mark]
        try:
            killed = (await self._client.ask(words, seconds=_KILL_SECONDS)).code == 0
        except SandboxError:
            killed = False
        if not killed and not self._stopped:
            await self._client.ask(["restart", "-t", "0", self.name])
        process.signal(signal.SIGKILL)

    async def _after(self, running: ProcessRunning, process: Process) -> None:
        code = exit_code(await process.exited())
        await running.drained()
        self._running.discard(process)
        process.close()
        try:
            if code in _SUSPECT:
                await self._check()
            running.end(code)
        except SandboxError as error:
            running.end(error)

    async def _check(self) -> None:
        """Raises `SandboxError` when the container does not run any more."""
        if self._stopped:
            raise self._lost("it was stopped while the command ran")
        state = await self._client.ask(["inspect", "--format", "{{.State.Running}} {{.State.OOMKilled}}", self.name])
        if state.code != 0:
            raise self._lost("its container is gone")
        if not state.stdout.startswith(b"true"):
            raise self._lost("its container has ended" + (": out of memory" if b"true" in state.stdout else ""))

    async def _was_hungry(self) -> bool:
        told = await self._client.ask(["exec", self.name, "/bin/sh", "-c", _OOMS])
        count = sum(int(line.split()[1]) for line in told.stdout.splitlines() if line.split()[1:2])
        before, self._ooms = self._ooms, count
        return count > before

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _lost(self, why: str) -> SandboxError:
        return SandboxError(f"sandbox {self.name!r}: {why}", kind="sandbox_lost")
