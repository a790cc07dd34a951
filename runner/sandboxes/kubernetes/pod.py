"""`PodSandbox`: one pod that waits, and an `exec` for each command.

A command is found inside by a mark in its environment, so that it can be killed with all that it started. What becomes
of the pod meanwhile is heard of by the watch of its section: a command does not wait for a node that is gone.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from itertools import count
from typing import Any

from runner.records.failure import SandboxError
from runner.sandboxes.capture import Capture
from runner.sandboxes.kubernetes.api import Api, ApiError
from runner.sandboxes.kubernetes.channels import STDOUT, Ended
from runner.sandboxes.kubernetes.execution import Execution, never_ran, open_execution
from runner.sandboxes.kubernetes.lookout import Followed, Lookout
from runner.sandboxes.kubernetes.pods import PodOptions
from runner.sandboxes.kubernetes.running import PodRunning
from runner.sandboxes.kubernetes.script import KILL, OOMS
from runner.sandboxes.owner import MARK
from runner.sandboxes.sandbox import Command, Entry, Ran, Running
from runner.sandboxes.shell_files import ShellFiles

_TMP = "/tmp"  # noqa: S108 (inside the pod)
_KILLED = 128 + signal.SIGKILL
_KILL_SECONDS = 15.0
_NEWS_SECONDS = 2.0
"""How long the cluster may take to say of a pod why a command in it ended."""


class PodSandbox:
    """The pod that is followed. `forget` is told when it is gone."""

    def __init__(
        self, followed: Followed, options: PodOptions, api: Api, lookout: Lookout, forget: Callable[[PodSandbox], None]
    ) -> None:
        self.name = followed.name
        self._followed = followed
        self._options = options
        self._api = api
        self._lookout = lookout
        self._forget = forget
        self._numbers = count()
        self._stopped = ""
        self._ooms = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._files = ShellFiles(self.exec, options.workdir, [options.workdir, _TMP])

    @property
    def workdir(self) -> str:
        return self._options.workdir

    async def exec(self, command: Command) -> Ran:
        started = time.monotonic()
        out, err = Capture(command.max_output), Capture(command.max_output)

        def heard(stream: int, data: bytes) -> None:
            (out if stream == STDOUT else err).add(data)

        limit = self._options.time if command.timeout is None else command.timeout
        execution, mark = await self._begin(command)
        try:
            ended = await self._heard(execution, heard, limit)
        except asyncio.CancelledError:
            self._later(self._kill(mark))
            raise
        except SandboxError:
            if not self._followed.over:
                self._later(self._kill(mark))  # whoever has no answer must not leave it running
            raise
        finally:
            self._later(execution.aclose())
        if ended is None:
            await self._kill(mark)
        code = _KILLED if ended is None or ended.code is None else ended.code
        hungry = ended is not None and code == _KILLED and (ended.code is None or await self._was_hungry())
        seconds = time.monotonic() - started
        return Ran(code, out.kept(), err.kept(), seconds, ended is None, hungry, out.dropped, err.dropped)

    async def start(self, command: Command) -> Running:
        execution, mark = await self._begin(command, goes_on=True)
        running = PodRunning(execution, lambda: self._kill(mark))
        self._later(self._run(running, execution))
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
        await self._end("it has been stopped")
        ending = self._tasks - {asyncio.current_task()}
        if ending:  # what ran in it hears of it, and lets go of its connections
            await asyncio.wait(ending, timeout=_NEWS_SECONDS)

    async def _end(self, why: str) -> None:
        if self._stopped:
            return
        self._stopped = why
        with suppress(SandboxError, ApiError):  # its labels say whose it is, its lifetime ends, the next run removes it
            await self._api.delete_pod(self.name, self._followed.uid)
        self._followed.end(why)
        self._lookout.forget(self.name)
        self._forget(self)

    async def _begin(self, command: Command, *, goes_on: bool = False) -> tuple[Execution, str]:
        self._check()
        mark = f"{self.name}/{next(self._numbers)};"
        cwd = command.cwd if command.cwd.startswith("/") else f"{self.workdir}/{command.cwd}".rstrip("/")
        env = {**self._options.env, **command.env, MARK: mark}
        execution = await self._open(command, cwd, env, goes_on)
        return execution, f"{MARK}={mark}"

    async def _open(self, command: Command, cwd: str, env: Mapping[str, str], goes_on: bool) -> Execution:
        try:
            return await open_execution(self._api, self.name, command, cwd, env, goes_on=goes_on)
        except ApiError as error:
            if error.status in (400, 404, 500):
                await self._lookout.ask(self._followed)
                self._check()
            if error.status in (401, 403):
                message = f"no command may be run in {self.name!r}: {error} (see `pods/exec` in the role asked for)"
                raise SandboxError(message, kind="sandbox_unavailable") from error
            raise self._lost(f"no command can be run in it: {error}") from error

    async def _heard(self, execution: Execution, heard: Callable[[int, bytes], None], limit: float) -> Ended | None:
        """How a command ended; None when its time was over. `code` is None where memory ended its pod with it."""
        hearing = asyncio.ensure_future(execution.hear(heard))
        gone = asyncio.ensure_future(self._followed.ended())
        try:
            done, _ = await asyncio.wait({hearing, gone}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                return None
            if hearing not in done:  # the pod went first; the last words of the command may be on their way
                await asyncio.wait({hearing}, timeout=0.5)
            ended = hearing.result() if hearing.done() else Ended(None)
        finally:
            for task in (hearing, gone):
                task.cancel()
        if ended.code is None:
            await self._explain(ended)
        return ended

    async def _explain(self, ended: Ended) -> None:
        """A command without an exit code. Raises `SandboxError`, unless memory ended it, and its pod with it."""
        patience = time.monotonic() + _NEWS_SECONDS
        while not self._followed.over and not _no_shell(ended) and time.monotonic() < patience:
            if not (await self._lookout.ask(self._followed)).over:
                await asyncio.sleep(0.3)
        if self._followed.standing.out_of_memory:
            return
        self._check()
        if _no_shell(ended):
            raise never_ran(ended)
        raise self._lost(ended.trouble)

    async def _run(self, running: PodRunning, execution: Execution) -> None:
        hearing = asyncio.ensure_future(execution.hear(running.heard))
        gone = asyncio.ensure_future(self._followed.ended())
        try:
            await asyncio.wait({hearing, gone}, return_when=asyncio.FIRST_COMPLETED)
            ended = hearing.result() if hearing.done() else Ended(None)
            if ended.code is None:
                await self._explain(ended)
            running.end(_KILLED if ended.code is None else ended.code)
        except SandboxError as error:
            running.end(error)
        except asyncio.CancelledError:
            running.end(self._lost("it was stopped while the command ran"))
            raise
        finally:
            for task in (hearing, gone):
                task.cancel()
            await execution.aclose()

    async def _kill(self, mark: str) -> None:
        """Kill what carries the mark, inside; where that cannot be done, the pod goes with it."""
        try:
            ran = await self._aside(["/bin/sh", "-c", KILL, "sh", mark], _KILL_SECONDS)
            killed = ran is not None and ran.code == 0
        except (SandboxError, ApiError):
            killed = False
        if not killed and not self._followed.over:
            await self._end("a command in it could not be killed")

    async def _was_hungry(self) -> bool:
        """Whether memory killed something since the last time somebody asked."""
        try:
            ran = await self._aside(["/bin/sh", "-c", OOMS], _KILL_SECONDS)
        except (SandboxError, ApiError):
            return (await self._lookout.ask(self._followed)).out_of_memory
        if ran is None:
            return False
        told = sum(int(line.split()[1]) for line in ran.stdout.splitlines() if line.split()[1:2])
        before, self._ooms = self._ooms, told
        return told > before

    async def _aside(self, argv: Sequence[str], seconds: float) -> Ran | None:
        """A command of ours beside the others, without a mark; None when it did not end in time."""
        out = Capture(1 << 16)
        execution = await open_execution(self._api, self.name, Command(argv), "/", {})
        try:
            async with asyncio.timeout(seconds):
                ended = await execution.hear(lambda stream, data: out.add(data))
        except TimeoutError:
            return None
        finally:
            self._later(execution.aclose())
        return None if ended.code is None else Ran(ended.code, out.kept(), b"", 0.0)

    def _check(self) -> None:
        """Raises `SandboxError` when it is over, or was stopped."""
        if self._stopped:
            raise self._lost(self._stopped)
        if self._followed.over:
            raise self._lost(self._followed.over)

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _lost(self, why: str) -> SandboxError:
        return SandboxError(f"sandbox {self.name!r}: {why}", kind="sandbox_lost")


def _no_shell(ended: Ended) -> bool:
    """Whether the runtime found no program to start: it is our own shell that it looked for."""
    return "no such file" in ended.trouble or "executable file not found" in ended.trouble
