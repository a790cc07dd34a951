"""`Supervisor`: starts the workers of one server, starts again what dies, and passes on what it is told to do.

It serves nothing itself and holds nothing but sockets, so nothing a rollout does can bring it down. Each worker is a
fresh interpreter: forking a loaded process would copy its threads' locks in whatever state they were.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.serve.workers.board import Board
from runner.serve.workers.membership import VARIABLE, Membership

_PAUSES = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds before a worker that died young is started again; the last one repeats."""
_LONG_LIFE = 30.0
"""Seconds after which a worker did not die young."""
_INCOMPLETE, _INTERRUPTED = 3, 130
_LONGEST_PATH = 90
"""Characters of a folder whose sockets the kernel can still name: it takes 104 to 108 in all."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """What is supervised: the command of a worker process, and what all of them inherit.

    `ready` is called once, when all answer, with how many rollouts and callbacks they recovered; `draining` with how
    many play and how many wait; `died` with a sentence about a worker that is started again.
    """

    command: Sequence[str]
    workers: int
    sockets: Sequence[int]
    lock: int
    ready: Callable[[int, int], None]
    draining: Callable[[int, int], None]
    died: Callable[[str], None]


class Supervisor:
    """Use it once: `run` it."""

    def __init__(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._folder = _private_folder()
        self._board = Board(self._folder / "board", crowd.workers)
        self._life, self._alive = os.pipe()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._told: dict[int, dict[str, int]] = {}
        self._stopping = asyncio.Event()
        self._ready = False
        self._first = asyncio.Event()

    async def run(self) -> tuple[int, tuple[int, int]]:
        """Until all workers have ended: the worst of their exit codes, and what they said of what they cut short.

        That is how many rollouts they could not finish, and how many of these have no verdict.
        """
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for number in signals:
            loop.add_signal_handler(number, self._stop)
        try:
            codes = await asyncio.gather(*(self._keep(worker) for worker in range(self._crowd.workers)))
            cut, left = (sum(told.get(word, 0) for told in self._told.values()) for word in ("cut", "left"))
            return worst(codes), (cut, left)
        finally:
            for number in signals:
                loop.remove_signal_handler(number)
            self._close()

    def _close(self) -> None:
        os.close(self._alive)  # whatever still lives ends now
        os.close(self._life)
        self._board.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _stop(self) -> None:
        """Pass a signal on: the first drains, the second ends at once."""
        if not self._stopping.is_set():
            running, held = self._board.totals()
            self._crowd.draining(running, held - running)
        self._stopping.set()
        self._first.set()
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)

    async def _keep(self, worker: int) -> int:
        """Have one worker alive until the server ends; its last exit code."""
        if worker:  # what the first cannot open, none can, and one of them says so
            await self._first.wait()
            if self._stopping.is_set():
                return 0
        young = 0
        while True:
            began = asyncio.get_running_loop().time()
            code = await self._live(worker)
            if self._stopping.is_set():
                # Killed by our own signal before it could hear it: it had begun nothing.
                return 0 if code == -signal.SIGTERM and worker not in self._told else code
            if not self._ready:
                self._stop_quietly()  # it said why; the others would say the same
                return code
            young = 0 if asyncio.get_running_loop().time() - began > _LONG_LIFE else young + 1
            pause = _PAUSES[min(young, len(_PAUSES)) - 1] if young else 0.0
            self._crowd.died(f"worker {worker} ended {_how(code)}; started again in {pause:g} s")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), pause)
            if self._stopping.is_set():
                return _INCOMPLETE

    async def _live(self, worker: int) -> int:
        """One life of a worker, from its start to its end; its exit code."""
        heard, report = os.pipe()
        crowd = self._crowd
        member = Membership(
            worker, crowd.workers, str(self._folder), tuple(crowd.sockets), self._life, report, crowd.lock
        )
        try:
            # A group of its own: Ctrl-C reaches us alone, and we pass on one signal.
            process = self._processes[worker] = subprocess.Popen(  # noqa: ASYNC220 - nothing else waits here
                crowd.command,
                env={**os.environ, VARIABLE: member.variable()},
                pass_fds=member.descriptors,
                process_group=0,
                stdin=subprocess.DEVNULL,
            )
        finally:
            os.close(report)
        try:
            await self._listen(worker, heard)  # to the end of the pipe: it has ended, or is about to
            return await asyncio.to_thread(process.wait)
        finally:
            del self._processes[worker]
            self._board.bury(worker)

    async def _listen(self, worker: int, heard: int) -> None:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(heard, "rb")
        )
        try:
            while line := await reader.readline():
                self._hear(worker, json.loads(line))
        finally:
            transport.close()

    def _hear(self, worker: int, said: Mapping[str, int]) -> None:
        self._told.setdefault(worker, {}).update(said)
        self._first.set()
        if not self._ready and len(self._told) == self._crowd.workers:
            self._ready = True
            told = self._told.values()
            if not self._stopping.is_set():
                self._crowd.ready(*(sum(each.get(name, 0) for each in told) for name in ("recovered", "owed")))

    def _stop_quietly(self) -> None:
        self._stopping.set()
        self._first.set()
        for process in self._processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.kill()


def worst(codes: Sequence[int]) -> int:
    """One exit code for several: ended at once, then a fault of the user's or ours, then unfinished."""
    for code in (_INTERRUPTED, 1, _INCOMPLETE):
        if code in codes:
            return code
    return _INCOMPLETE if any(codes) else 0


def _how(code: int) -> str:
    if code >= 0:
        return f"with code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"


def _private_folder() -> Path:
    """A folder that only this user may look into, with a path that is short enough for sockets."""
    found: Any = tempfile.mkdtemp(prefix="osmosis-run-serve-")
    if len(found) > _LONGEST_PATH:
        os.rmdir(found)  # noqa: PTH106
        found = tempfile.mkdtemp(prefix="osmosis-run-serve-", dir="/tmp")
    return Path(found)
