"""The pipe to a server that is a program: lines of JSON, of a bounded length, from a process that ends with us.

Our own rather than the library's, which keeps a line of any length and a server that only ever notifies.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, Literal

from anyio import (
    BrokenResourceError,
    ClosedResourceError,
    create_memory_object_stream,
    create_task_group,
    move_on_after,
)
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCMessage, JSONRPCNotification, jsonrpc_message_adapter

from runner.sandboxes.owner import MARK, marked, owner_key
from runner.sandboxes.process import Process, Start
from runner.tools.mcp.endpoint import MAX_MESSAGE, CommandEndpoint, Flooded

_PATIENCE = 2.0
"""Seconds that a server gets to end by itself when its input ends."""
_KEPT = ("PATH", "HOME", "LOGNAME", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "TMPDIR")
_MOST_NOTICES = 10_000
"""Notifications in a row without one answer."""
_TAIL = 2000
_numbers = count()

Message = SessionMessage | Exception


class Said:
    """The last words of a server on its standard error, and why it was cut off, for whoever asks what went wrong."""

    def __init__(self) -> None:
        self._tail = bytearray()
        self.flooded: Flooded | None = None

    def add(self, data: bytes) -> None:
        self._tail += data[-_TAIL:]
        del self._tail[:-_TAIL]

    @property
    def text(self) -> str:
        return self._tail.decode("utf-8", "replace").strip()


@asynccontextmanager
async def pipe(endpoint: CommandEndpoint, said: Said) -> AsyncIterator[tuple[Any, Any]]:
    """The streams of a started server. Raises `OSError` where it cannot be started; it is gone when the block ends."""
    mark = f"{owner_key()}/mcp/{next(_numbers)}"
    env = {key: os.environ[key] for key in _KEPT if key in os.environ} | dict(endpoint.env) | {MARK: mark}
    dying = ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
    argv = [*dying, *_found(endpoint, env)]
    into, messages = create_memory_object_stream[Message](64)
    outgoing, out_of = create_memory_object_stream[SessionMessage](0)
    lines = _Lines(into, said)
    with into, messages, outgoing, out_of:
        process = lines.process = Process(Start(argv, env, endpoint.cwd), lines.heard)
        try:
            async with create_task_group() as tasks:
                tasks.start_soon(lines.deliver)
                tasks.start_soon(_write, out_of, process, lines)
                tasks.start_soon(_watch, process, lines)
                yield messages, outgoing
                tasks.cancel_scope.cancel()
        finally:
            with move_on_after(_PATIENCE * 2, shield=True):
                await _end(process, mark)


def _found(endpoint: CommandEndpoint, env: dict[str, str]) -> list[str]:
    """The command with its program's path: `setpriv` would only say so on standard error. Raises `OSError`."""
    program, *rest = endpoint.argv
    there = str(Path(endpoint.cwd or ".", program)) if os.sep in program else program
    path = shutil.which(there, path=env.get("PATH"))
    if path is None:
        raise FileNotFoundError(f"there is no program `{program}`")
    return [path, *rest]


class _Lines:
    """Bytes of the process to messages. A reader that is behind makes the process wait."""

    def __init__(self, into: MemoryObjectSendStream[Message], said: Said) -> None:
        self._into = into
        self._said = said
        self._open = bytearray()
        self._waiting: list[Message] = []
        self._notices = 0
        self._wake: Any = None
        self.process: Process | None = None
        self.ended = False

    def heard(self, stream: Literal["out", "err"], data: bytes) -> None:
        if stream == "err":
            self._said.add(data)
            return
        *ends, rest = data.split(b"\n")  # of the new part only: a long line would be searched again and again
        for end in ends:
            line, self._open = bytes(self._open + end), bytearray()
            if line.strip():
                self._add(line)
        self._open += rest
        if len(self._open) > MAX_MESSAGE:
            self._flood(f"a message of more than {MAX_MESSAGE >> 20} MiB")
        self._rouse()

    def end(self) -> None:
        self.ended = True
        self._rouse()

    async def deliver(self) -> None:
        """Hand on what came, as fast as the session takes it."""
        from asyncio import Event

        self._wake = Event()
        async with self._into:
            while True:
                while self._waiting:
                    batch, self._waiting = self._waiting, []
                    for message in batch:
                        await self._into.send(message)
                    if self.process is not None:
                        self.process.pause(False)
                if self.ended:
                    return
                self._wake.clear()
                await self._wake.wait()

    def _add(self, line: bytes) -> None:
        try:
            message: JSONRPCMessage = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError as error:
            self._waiting.append(error)
            return
        self._notices = self._notices + 1 if isinstance(message, JSONRPCNotification) else 0
        if self._notices > _MOST_NOTICES:
            self._flood(f"{_MOST_NOTICES:,} notifications without one answer")
        self._waiting.append(SessionMessage(message))

    def _flood(self, what: str) -> None:
        self._said.flooded = self._said.flooded or Flooded(f"it sent {what}")
        self._open.clear()
        self._waiting.clear()
        if self.process is not None:
            self.process.signal(signal.SIGKILL)
        self.end()

    def _rouse(self) -> None:
        if self.process is not None and len(self._waiting) > 256:
            self.process.pause(True)
        if self._wake is not None:
            self._wake.set()


async def _write(messages: MemoryObjectReceiveStream[SessionMessage], process: Process, lines: _Lines) -> None:
    async with messages:
        async for message in messages:
            process.feed(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
            try:
                await process.fed()
            except (BrokenPipeError, BrokenResourceError, ClosedResourceError):
                lines.end()
                return


async def _watch(process: Process, lines: _Lines) -> None:
    await process.exited()
    await process.drained()
    lines.end()


async def _end(process: Process, mark: str) -> None:
    process.feed(b"", close=True)
    with move_on_after(_PATIENCE):
        await process.exited()
    process.signal(signal.SIGKILL)
    for pid in marked(mark):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    await process.exited()
    await process.drained(0.1)
