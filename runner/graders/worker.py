"""Worker processes that can be killed: the only way to end a regular expression or an algebra system that has lost
itself.

Each is a plain subprocess running `worker_main.py`, spoken to in JSON lines. They start at first use, at most `size`
of them; whoever overruns its time is killed, and the next request gets a fresh one.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.records.failure import GraderError, GraderTimeout

if TYPE_CHECKING:
    import asyncio  # at run time inside functions: building a grader must not pay for it

_MAIN = Path(__file__).with_name("worker_main.py")
_LINE_LIMIT = 1 << 30
_START_TIMEOUT = 60.0


class WorkerDied(Exception):
    """The process ended before it answered. The message says how."""


class Workers:
    """A pool of at most `size` worker processes, each allowed `memory` bytes of address space.

    Nothing runs until the first `ask`. Close with `aclose`; an `ask` after that starts afresh. Belongs to the event
    loop that uses it.
    """

    def __init__(self, size: int = 2, memory: int = 2 << 30) -> None:
        self._size = size
        self._memory = memory
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._reaping: set[asyncio.Task[None]] = set()
        self._slots: asyncio.Semaphore | None = None
        self._closings = 0

    @property
    def pids(self) -> list[int]:
        """Process ids of the workers that are alive."""
        return [worker.pid for worker in (*self._idle, *self._busy) if worker.alive]

    async def ask(self, kind: str, payload: dict[str, Any], timeout: float) -> dict[str, Any]:
        """Have a worker answer `payload`. The `timeout` in seconds begins when a worker begins.

        Raises `GraderTimeout` when it overruns (that worker is killed, the others go on), `GraderError` when the
        worker cannot answer or dies twice over the same request. Cancelling kills the worker, too.
        """
        import asyncio

        self._slots = self._slots or asyncio.Semaphore(self._size)
        line = json.dumps({"kind": kind, **payload}).encode() + b"\n"
        closings, died = self._closings, WorkerDied()
        async with self._slots:
            # A worker may have been killed from outside, or while idle: one more chance, with a fresh process.
            for _ in range(2):
                if closings != self._closings:
                    raise GraderError("the run closed its worker processes before this answer was compared")
                try:
                    return _answer(await self._try(kind, line, timeout))
                except WorkerDied as error:
                    died = error
        raise GraderError(f"the worker process died twice over one answer: {died}") from died

    async def _try(self, kind: str, line: bytes, timeout: float) -> dict[str, Any]:
        import asyncio

        worker = await self._take()
        kept = False
        try:
            reply = await worker.prepare(kind)
            if reply is None:
                reply = await asyncio.wait_for(worker.exchange(line), timeout)
            kept = True
            return reply
        except TimeoutError as error:
            raise GraderTimeout(
                f"comparing this answer took longer than {timeout:g} s and was stopped; a longer timeout allows more"
            ) from error
        finally:
            self._give_back(worker, kept)

    async def _take(self) -> _Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                self._busy.add(worker)
                return worker
            self._bury(worker)
        worker = await _Worker.start(self._memory)
        self._busy.add(worker)
        return worker

    def _give_back(self, worker: _Worker, kept: bool) -> None:
        self._busy.discard(worker)
        if kept and worker.alive:
            self._idle.append(worker)
        else:
            self._bury(worker)

    def _bury(self, worker: _Worker) -> None:
        import asyncio

        # Killing is immediate; collecting the body needs the loop, and whoever asked may be cancelled by now.
        worker.kill()
        task = asyncio.ensure_future(worker.wait())
        self._reaping.add(task)
        task.add_done_callback(self._reaping.discard)

    async def aclose(self) -> None:
        """End every worker and wait until each is gone. Whoever still asks gets a `GraderError`."""
        import asyncio

        self._closings += 1
        for worker in self._idle:
            self._bury(worker)
        self._idle.clear()
        for worker in self._busy:
            worker.kill()  # whoever reads from it sees the end, and buries it
        while self._busy or self._reaping:
            await (asyncio.wait(tuple(self._reaping)) if self._reaping else asyncio.sleep(0.005))
        self._slots = None


def _answer(reply: dict[str, Any]) -> dict[str, Any]:
    if "error" in reply:
        raise GraderError(str(reply["error"]), kind=str(reply.get("error_kind", "grader_error")))
    return reply


class _Worker:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._prepared: set[str] = set()

    @classmethod
    async def start(cls, memory: int) -> _Worker:
        import asyncio

        # By path and with -P: neither the user's folder nor a `runner` of their own can be imported instead.
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",
                str(_MAIN),
                str(memory),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=_LINE_LIMIT,
                start_new_session=True,  # Ctrl-C is for us: the worker ends when its pipe closes
            )
        except OSError as error:
            raise GraderError(f"a worker process for graders could not start: {error}") from error
        return cls(process)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    async def prepare(self, kind: str) -> dict[str, Any] | None:
        """Load what `kind` needs before its clock starts: an algebra system takes longer than most answers.

        Returns the reply to give instead, when it cannot be had.
        """
        import asyncio

        if kind in self._prepared:
            return None
        line = json.dumps({"kind": "load", "what": kind}).encode() + b"\n"
        try:
            reply = await asyncio.wait_for(self.exchange(line), _START_TIMEOUT)
        except TimeoutError as error:
            raise GraderError(f"a worker process was not ready after {_START_TIMEOUT:g} s") from error
        if "error" in reply:
            return reply
        self._prepared.add(kind)
        return None

    async def exchange(self, line: bytes) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(line)
            await stdin.drain()
            reply = await stdout.readline()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise WorkerDied("its pipe closed") from error
        if not reply.endswith(b"\n"):
            raise WorkerDied(f"exit status {await self._process.wait()}")
        answer: dict[str, Any] = json.loads(reply)
        return answer

    def kill(self) -> None:
        if self.alive:
            self._process.kill()

    async def wait(self) -> None:
        stdin = self._process.stdin
        if stdin is not None:
            stdin.close()
        # Reading to the end closes the pipe's transport, which a loop that ends would leave open.
        if self._process.stdout is not None:
            while await self._process.stdout.read(1 << 16):
                pass
        await self._process.wait()
