"""`LocalSandbox`: what the sandboxes on this machine share: a folder of their own, commands as child processes.

How a command is started, killed and judged is the kind's: see `none` and `bubblewrap`.
"""

from __future__ import annotations

import asyncio
import shutil
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

from runner.records.failure import SandboxError
from runner.sandboxes.capture import Capture
from runner.sandboxes.inside import Inside
from runner.sandboxes.limits import Group
from runner.sandboxes.owner import remove_tree
from runner.sandboxes.process import Process, Start
from runner.sandboxes.running import ProcessRunning
from runner.sandboxes.sandbox import Command, Entry, Ran, Running

T = TypeVar("T")

_KILL_SECONDS = 5.0
"""How long a killed process may take to go before the sandbox counts as lost."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a local sandbox stands on: its name, its folder on the host, and the control group that holds it, if any."""

    name: str
    folder: Path
    group: Group | None = None


class Launch(ABC):
    """One command on its way: how it starts, how it is killed, and what its end means."""

    start: Start

    @abstractmethod
    def opened(self) -> None:
        """It has been started: what only the child needs is let go."""

    @abstractmethod
    def kill(self, process: Process) -> None:
        """Kill it and everything it started."""

    @abstractmethod
    def judge(self, returned: int, said: bytes) -> int:
        """The exit code, from what came back; `said` is its standard error. Raises `SandboxError`."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything. Called once, whatever happened."""


class LocalSandbox(ABC):
    """A sandbox whose files are a folder of this machine."""

    def __init__(self, place: Place, inside: Inside, time: float, forget: Callable[[LocalSandbox], None]) -> None:
        self.place = place
        self._inside = inside
        self._time = time
        self._forget = forget
        self._stopped = False
        self._running: dict[Process, Launch] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    @abstractmethod
    def workdir(self) -> str: ...

    @abstractmethod
    def _launch(self, command: Command, *, merged: bool) -> Launch: ...

    async def exec(self, command: Command) -> Ran:
        started = time.monotonic()
        streams = {"out": Capture(command.max_output), "err": Capture(command.max_output)}

        def heard(stream: Literal["out", "err"], data: bytes) -> None:
            streams[stream].add(data)

        process, launch = self._begin(command, heard, merged=False)
        try:
            process.feed(command.stdin, close=True)
            limit = self._time if command.timeout is None else command.timeout
            timed_out = not await self._ended(process, launch, limit)
            launch.kill(process)  # what it left running: it ends with its command
            await process.drained()
            returned = await process.exited()
            out, err = streams["out"], streams["err"]
            code = 128 + signal.SIGKILL if timed_out else self._judged(launch, returned, err.kept())
            hungry = self.place.group is not None and self.place.group.killed_for_memory()
        finally:
            self._done(process, launch)
        seconds = time.monotonic() - started
        return Ran(code, out.kept(), err.kept(), seconds, timed_out, hungry, out.dropped, err.dropped)

    async def start(self, command: Command) -> Running:
        running = ProcessRunning()
        process, launch = self._begin(command, running.heard, merged=True)
        process.feed(command.stdin)
        running.begin(process, lambda: launch.kill(process))
        task = asyncio.get_running_loop().create_task(self._after(running, process, launch))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return running

    async def put(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        await self._file(lambda: self._inside.write(path, data, mode))

    async def get(self, path: str, *, limit: int | None = None) -> bytes:
        return await self._file(lambda: self._inside.read(path, limit))

    async def list(self, path: str = ".") -> list[Entry]:
        return await self._file(lambda: self._inside.entries(path))

    async def remove(self, path: str) -> None:
        await self._file(lambda: self._inside.remove(path))

    async def put_tree(self, path: str, source: Path) -> None:
        """Copy a file of the host to `path`, or the contents of a folder into it."""
        await self._file(lambda: self._inside.copy_in(source, path))

    async def stop(self) -> None:
        if self._stopped:
            return
        self._stopped = True
        for process, launch in list(self._running.items()):
            launch.kill(process)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_KILL_SECONDS)
        await asyncio.to_thread(self.remove_all)
        self._forget(self)

    def remove_all(self) -> None:
        """Its group with all that runs in it, and its folder. Blocks."""
        if self.place.group is not None:
            self.place.group.remove()
        remove_tree(self.place.folder)

    def _begin(
        self, command: Command, heard: Callable[[Literal["out", "err"], bytes], None], *, merged: bool
    ) -> tuple[Process, Launch]:
        self._check()
        launch = self._launch(command, merged=merged)
        try:
            process = Process(launch.start, heard)
        except (OSError, ValueError) as error:
            launch.close()
            if isinstance(error, OSError) and shutil.which(launch.start.argv[0]) is None:
                raise self._lost(f"{launch.start.argv[0]} cannot be started: {error}") from error
            raise
        launch.opened()
        self._running[process] = launch
        return process, launch

    async def _ended(self, process: Process, launch: Launch, seconds: float) -> bool:
        """Whether it ended in time; after it, it has ended."""
        try:
            async with asyncio.timeout(seconds):
                await process.exited()
            return True
        except TimeoutError:
            launch.kill(process)
        except asyncio.CancelledError:
            launch.kill(process)
            await self._killed(process)
            raise
        await self._killed(process)
        return False

    async def _killed(self, process: Process) -> None:
        try:
            async with asyncio.timeout(_KILL_SECONDS):
                await process.exited()
        except TimeoutError:
            raise self._lost("a command cannot be killed") from None

    async def _after(self, running: ProcessRunning, process: Process, launch: Launch) -> None:
        returned = await process.exited()
        launch.kill(process)
        await running.drained()
        try:
            running.end(self._judged(launch, returned, b""))
        except Exception as error:
            running.end(error)
        self._done(process, launch)

    def _done(self, process: Process, launch: Launch) -> None:
        self._running.pop(process, None)
        process.close()
        launch.close()

    def _judged(self, launch: Launch, returned: int, said: bytes) -> int:
        if self._stopped:
            raise self._lost("it was stopped while the command ran")
        code = launch.judge(returned, said)
        self._check()
        return code

    def _check(self) -> None:
        if self._stopped:
            raise self._lost("it has been stopped")
        if not self.place.folder.is_dir():
            raise self._lost(f"its folder {self.place.folder} is gone")
        if self.place.group is not None and self.place.group.gone:
            raise self._lost("its control group is gone")

    def _lost(self, why: str) -> SandboxError:
        return SandboxError(f"sandbox {self.place.name!r}: {why}", kind="sandbox_lost")

    async def _file(self, work: Callable[[], T]) -> T:
        self._check()
        try:
            return await asyncio.to_thread(work)
        except OSError:
            self._check()
            raise
