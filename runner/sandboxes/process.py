"""`Process`: a child process whose streams are read on the event loop, in bounded memory, until it has really ended.

Our own rather than asyncio's: no thread for each child, the descriptors a sandbox passes on, the same under every event
loop. Children are started in an empty context, so that no tool's or rollout's own bookkeeping takes them for its own:
they end with their sandbox.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass
from typing import Literal

_CHUNK = 1 << 16
_DRAIN = 1.0
"""Seconds that streams may stay open when the process itself has ended: somebody else holds them."""


@dataclass(frozen=True, slots=True)
class Start:
    """How to start a child. `env` is all it gets; `fds` are open descriptors it inherits under their own numbers."""

    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: str | None = None
    fds: Sequence[int] = ()
    merged: bool = False
    """Standard error goes where standard output goes."""
    piped: bool = True
    """Whether there is a standard input to write to; without it, it is empty."""


class Process:
    """A child that is running or has ended. `heard(stream, data)` is told what it says; data is never empty.

    Raises `OSError` where the program cannot be started.
    """

    def __init__(self, start: Start, heard: Callable[[Literal["out", "err"], bytes], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._heard = heard
        self._popen = Context().run(_popen, start)
        self.pid = self._popen.pid
        self._pending = bytearray()
        self._closing = False
        self._written: asyncio.Event | None = None
        self._open: dict[int, Literal["out", "err"]] = {}
        self._paused: set[int] = set()
        self._drained: asyncio.Future[None] = self._loop.create_future()
        self._exited: asyncio.Future[int] = self._loop.create_future()
        self._stdin = -1
        if self._popen.stdin is not None:
            self._stdin = self._popen.stdin.fileno()
            os.set_blocking(self._stdin, False)
        for stream, name in ((self._popen.stdout, "out"), (self._popen.stderr, "err")):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                self._open[stream.fileno()] = "out" if name == "out" else "err"
                self._loop.add_reader(stream.fileno(), self._readable, stream.fileno())
        self._watch()

    def feed(self, data: bytes, *, close: bool = False) -> None:
        """Write to its standard input, as fast as it reads; `close` ends the input after it."""
        if self._stdin < 0:
            return
        self._pending += data
        self._closing = self._closing or close
        self._writable()

    async def fed(self) -> None:
        """Wait until everything was written. Raises `BrokenPipeError` when it takes no more."""
        if self._stdin < 0:
            raise BrokenPipeError("the command has ended")
        if self._pending:
            self._written = self._written or asyncio.Event()
            await self._written.wait()
            if self._stdin < 0:
                raise BrokenPipeError("the command has ended")

    def pause(self, paused: bool) -> None:
        """Stop listening for now, or go on: whoever writes then waits."""
        for descriptor in self._open:
            if paused and descriptor not in self._paused:
                self._loop.remove_reader(descriptor)
                self._paused.add(descriptor)
            elif not paused and descriptor in self._paused:
                self._paused.discard(descriptor)
                self._loop.add_reader(descriptor, self._readable, descriptor)

    @property
    def ended(self) -> bool:
        return self._exited.done()

    async def exited(self) -> int:
        """The return code as Python has it: negative for a signal."""
        return await asyncio.shield(self._exited)

    async def drained(self, seconds: float = _DRAIN) -> None:
        """Everything it said was heard, or `seconds` have passed and what still holds its streams is given up."""
        await asyncio.wait({self._drained}, timeout=seconds)
        self.close()

    def signal(self, number: int) -> None:
        """Send a signal to it and to its process group."""
        if not self._exited.done():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)
            with suppress(ProcessLookupError, PermissionError):
                os.kill(self.pid, number)

    def close(self) -> None:
        """Let go of its streams."""
        self._end_input()
        for descriptor in list(self._open):
            self._end_stream(descriptor)

    def _watch(self) -> None:
        try:
            watched = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            threading.Thread(target=self._wait_for, name="sandbox-wait", daemon=True).start()
            return

        def gone() -> None:
            self._loop.remove_reader(watched)
            os.close(watched)
            self._end(self._popen.wait())

        self._loop.add_reader(watched, gone)

    def _wait_for(self) -> None:
        code = self._popen.wait()
        with suppress(RuntimeError):  # the loop has closed: nobody is left to hear
            self._loop.call_soon_threadsafe(self._end, code)

    def _end(self, code: int) -> None:
        if not self._exited.done():
            self._exited.set_result(code)

    def _readable(self, descriptor: int) -> None:
        try:
            data = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._heard(self._open[descriptor], data)
        else:
            self._end_stream(descriptor)

    def _end_stream(self, descriptor: int) -> None:
        name = self._open.pop(descriptor, None)
        if name is None:
            return
        if descriptor in self._paused:
            self._paused.discard(descriptor)
        else:
            self._loop.remove_reader(descriptor)
        stream = self._popen.stdout if name == "out" else self._popen.stderr
        if stream is not None:
            stream.close()
        if not self._open and not self._drained.done():
            self._drained.set_result(None)

    def _writable(self) -> None:
        try:
            while self._pending:
                sent = os.write(self._stdin, memoryview(self._pending)[:_CHUNK])
                del self._pending[:sent]
        except BlockingIOError:
            self._loop.add_writer(self._stdin, self._writable)
            return
        except OSError:
            self._end_input()  # it reads no more, which is its right
            return
        self._loop.remove_writer(self._stdin)
        if self._written is not None:
            self._written.set()
            self._written = None
        if self._closing:
            self._end_input()

    def _end_input(self) -> None:
        if self._stdin < 0:
            return
        self._loop.remove_writer(self._stdin)
        self._stdin = -1
        self._pending.clear()
        if self._popen.stdin is not None:
            with suppress(OSError):
                self._popen.stdin.close()
        if self._written is not None:
            self._written.set()


def _popen(start: Start) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        list(start.argv),
        stdin=subprocess.PIPE if start.piped else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if start.merged else subprocess.PIPE,
        bufsize=0,
        cwd=start.cwd,
        env=dict(start.env),
        pass_fds=tuple(start.fds),
        start_new_session=True,
    )


def exit_code(returned: int) -> int:
    """A return code as a shell says it: 128 + N for signal N."""
    return 128 - returned if returned < 0 else returned
