"""The server under test as a process of its own: started, watched, killed and started again."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex

from pydantic_core import from_json

KEY_NAME = "OSMOSIS_SIMULATE_KEY"
_STARTING = 60.0
_STOPPING = 20.0
_TAIL = 30


class ServerError(Exception):
    """The server did not start, or ended by itself. `tail` is the end of what it said on stderr."""

    def __init__(self, message: str, tail: str) -> None:
        super().__init__(message)
        self.tail = tail


class Server:
    """`osmosis-run serve FILE` on a free port, with a state of its own and a key made for it, while it is entered.

    `settings` are `--set` words. `folder` holds its state and is removed at the end.
    """

    def __init__(self, file: Path, *, profile: str | None = None, settings: Sequence[str] = ()) -> None:
        self._file = file
        self._profile = profile
        self._settings = tuple(settings)
        self._folder = tempfile.TemporaryDirectory(prefix="osmosis-simulate-", ignore_cleanup_errors=True)
        self._process: asyncio.subprocess.Process | None = None
        self._reading: list[asyncio.Task[None]] = []
        self._said: deque[str] = deque(maxlen=_TAIL)
        self._port = 0
        self._wanted = False
        self.key = f"sim-{token_hex(16)}"
        self.url = ""
        self.restarts = 0

    async def __aenter__(self) -> Server:
        try:
            await self.start()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, kind: type[BaseException] | None = None, *_: object) -> None:
        # Nobody waits for the drain of a command that was interrupted.
        hurried = kind is not None and issubclass(kind, asyncio.CancelledError)
        await (self.kill() if hurried else self.stop())
        self._folder.cleanup()

    @property
    def tail(self) -> str:
        """The last lines of its stderr."""
        return "\n".join(self._said)

    @property
    def died(self) -> int | None:
        """The exit code of a server that ended by itself; None while it is up or was stopped by us."""
        ended = self._process is not None and self._process.returncode is not None
        return self._process.returncode if ended and self._wanted and self._process is not None else None

    def _command(self) -> list[str]:
        # -P: the user's folder may hold a package called `runner`, and is not to be looked in first.
        words = [sys.executable, "-P", "-m", "runner.cli.main", "serve", str(self._file), "--port", str(self._port)]
        if self._profile:
            words += ["--profile", self._profile]
        state = Path(self._folder.name) / "rollouts.db"
        ours = [f'serve.state="{state}"', 'serve.drain="5s"', f'serve.api_key={{env="{KEY_NAME}"}}', *self._settings]
        return words + [word for setting in ours for word in ("--set", setting)]

    async def start(self) -> None:
        """Start it and wait for its address. Raises ServerError."""
        self._process = await asyncio.create_subprocess_exec(
            *self._command(),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, KEY_NAME: self.key},
            start_new_session=True,  # Ctrl-C is for us; we stop it
        )
        assert self._process.stdout is not None and self._process.stderr is not None
        self._reading = [asyncio.ensure_future(self._listen(self._process.stderr))]
        try:
            async with asyncio.timeout(_STARTING):
                line = await self._process.stdout.readline()
        except TimeoutError:
            await self._end(signal.SIGKILL)
            raise ServerError(f"the server said no address within {_STARTING:g} s", self.tail) from None
        try:
            told = from_json(line)
            self.url = str(told["url"]).replace("0.0.0.0", "127.0.0.1")  # noqa: S104 (read, not bound)
        except (ValueError, KeyError, TypeError):
            await self._end(signal.SIGKILL)
            raise ServerError("the server did not start", self.tail) from None
        self._reading.append(asyncio.ensure_future(_drain(self._process.stdout)))
        self._port = int(self.url.rpartition(":")[2])
        self._wanted = True

    async def _listen(self, stream: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # a line longer than the reader's buffer
                continue
            if not line:
                return
            self._said.append(line.decode("utf-8", "replace").rstrip("\n"))

    async def kill(self) -> None:
        """End it without a goodbye (`kill -9`), with every process it started."""
        self._wanted = False
        await self._end(signal.SIGKILL)

    async def restart(self) -> None:
        """Start it again, with the same state and on the same port. Raises ServerError."""
        self.restarts += 1
        await self.start()

    async def stop(self) -> int | None:
        """Ask it to end (SIGTERM), then insist. Returns its exit code, None if it was never up."""
        self._wanted = False
        return await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> int | None:
        process = self._process
        if process is None:
            return None
        if process.returncode is None:
            _signal(process.pid, number, group=number == signal.SIGKILL)
            try:
                async with asyncio.timeout(_STOPPING):
                    await process.wait()
            except TimeoutError:
                _signal(process.pid, signal.SIGKILL, group=True)
                await process.wait()
        else:
            _signal(process.pid, signal.SIGKILL, group=True)  # it died: what it had started goes, too
        if self._reading:
            await asyncio.wait(self._reading, timeout=1.0)
        for task in self._reading:
            task.cancel()
        return process.returncode


def _signal(pid: int, number: signal.Signals, *, group: bool) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, number) if group else os.kill(pid, number)


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.read(65536):
        pass
