"""`Bus`: what workers ask one another, over Unix sockets in a folder that nobody else may open.

A frame is two lengths (4 bytes each), a JSON head, and raw bytes, so that bodies go as they are. One connection to
each sibling carries all that is asked, and answers come in any order.
"""

from __future__ import annotations

import asyncio
import json
import logging
import struct
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

_LENGTHS = struct.Struct("!II")

Said: TypeAlias = tuple[Mapping[str, Any], bytes]
"""A JSON object and raw bytes."""
Handler: TypeAlias = Callable[[str, Mapping[str, Any], bytes], Awaitable[Said]]
"""Answers what is asked: the word for it, and what comes with it."""

log = logging.getLogger(__name__)


class NoAnswer(Exception):
    """A sibling does not answer. `sent`: it may have heard the question all the same."""

    def __init__(self, sibling: int, why: str, *, sent: bool) -> None:
        super().__init__(f"worker {sibling} does not answer: {why}")
        self.sent = sent


class Bus:
    """One worker's end. Bound to one event loop."""

    def __init__(self, folder: Path, worker: int, handle: Handler) -> None:
        self._folder = folder
        self._worker = worker
        self._handle = handle
        self._server: asyncio.Server | None = None
        self._lines: dict[int, _Line] = {}
        self._opening: dict[int, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._callers: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    async def open(self) -> None:
        """Answer the others from now on."""
        path = self._folder / f"{self._worker}.sock"
        path.unlink(missing_ok=True)  # a predecessor's
        self._server = await asyncio.start_unix_server(self._serve, path)

    async def ask(self, sibling: int, what: str, head: Mapping[str, Any], body: bytes = b"", *, timeout: float) -> Said:
        """A sibling's answer. Raises `NoAnswer`."""
        sent = False
        try:
            async with asyncio.timeout(timeout):
                line = await self._line(sibling)
                sent = True
                return await line.ask({**head, "what": what}, body)
        except (OSError, EOFError, TimeoutError) as error:
            raise NoAnswer(sibling, str(error) or type(error).__name__, sent=sent) from None

    def tell(self, sibling: int, what: str) -> None:
        """Say something, and do not wait to see whether it was heard."""

        async def say() -> None:
            try:
                await self.ask(sibling, what, {}, timeout=1.0)
            except NoAnswer as error:
                log.debug("%s", error)

        self._follow(say())

    async def aclose(self) -> None:
        """Neither ask nor answer any more."""
        if self._server is not None:
            self._server.close()
        for line in list(self._lines.values()):
            line.close()
        for task in list(self._tasks):
            task.cancel()
        # Not cancelled: the loop would report that as an error of the connection.
        for writer in list(self._callers.values()):
            writer.close()
        if left := {*self._tasks, *self._callers}:
            await asyncio.wait(left)

    async def _line(self, sibling: int) -> _Line:
        async with self._opening.setdefault(sibling, asyncio.Lock()):
            line = self._lines.get(sibling)
            if line is None or line.closed:
                path = self._folder / f"{sibling}.sock"
                line = self._lines[sibling] = _Line(*await asyncio.open_unix_connection(path))
                self._follow(line.listen())
            return line

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """What one sibling asks, each question in a task of its own."""
        task = asyncio.current_task()
        assert task is not None
        self._callers[task] = writer
        try:
            while True:
                head, body = await _read(reader)
                self._follow(self._answer(writer, head, body))
        except (OSError, EOFError):
            return  # it is gone
        finally:
            del self._callers[task]
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, head: Mapping[str, Any], body: bytes) -> None:
        try:
            said, blob = await self._handle(head["what"], head, body)
        except Exception as error:  # whoever asked is told, and serves its own controller
            log.exception("what a sibling asked (%s) could not be answered", head["what"])
            said, blob = {"fault": f"{type(error).__name__}: {error}"}, b""
        if not writer.is_closing():
            _write(writer, {**said, "id": head["id"]}, blob)

    def _follow(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Line:
    """A connection to one sibling."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._asked: dict[int, asyncio.Future[Said]] = {}
        self._number = 0
        self.closed = False

    async def ask(self, head: Mapping[str, Any], body: bytes) -> Said:
        self._number += 1
        number = self._number
        future = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            if self.closed:
                raise EOFError("it has hung up")
            _write(self._writer, {**head, "id": number}, body)
            await self._writer.drain()
            said, blob = await future
        finally:
            del self._asked[number]
        if "fault" in said:
            raise EOFError(said["fault"])
        return said, blob

    async def listen(self) -> None:
        try:
            while True:
                said, blob = await _read(self._reader)
                future = self._asked.get(said["id"])
                if future is not None and not future.done():
                    future.set_result((said, blob))
        except (OSError, EOFError):
            pass
        finally:
            self.close()

    def close(self) -> None:
        self.closed = True
        self._writer.close()
        for future in self._asked.values():
            if not future.done():
                future.set_exception(EOFError("it has hung up"))


def _write(writer: asyncio.StreamWriter, head: Mapping[str, Any], body: bytes) -> None:
    text = json.dumps(head).encode()
    writer.write(_LENGTHS.pack(len(text), len(body)) + text)
    if body:
        writer.write(body)


async def _read(reader: asyncio.StreamReader) -> Said:
    head, body = _LENGTHS.unpack(await reader.readexactly(_LENGTHS.size))
    said: Mapping[str, Any] = json.loads(await reader.readexactly(head))
    return said, await reader.readexactly(body) if body else b""
