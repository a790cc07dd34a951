"""`Exchange`: one plain request over HTTP/1.1 and its answer, as ASGI, for a fifth of what a general parser costs.

`read_plain` knows the one shape that nearly every request of a controller has. It judges nothing: whatever is not
exactly that, however harmless or hostile, is left to hypercorn.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

from runner.records.quick import quick
from runner.serve.http.body import Message

MAX_RECV = 2**16
_HEAD = re.compile(rb"(GET|POST) (/[!-~]*) HTTP/1\.1\r\n((?:[-!#$%&'*+.^_`|~0-9A-Za-z]+:[\t -~]*\r\n)+)\r\n")
_LENGTH = re.compile(rb"[0-9]{1,15}")
_ODD = frozenset({b"expect", b"te", b"trailer", b"transfer-encoding", b"upgrade"})
"""Headers that change how a request is read or answered."""


@quick
class Plain:
    """The head of a request. `length` is its body's, in bytes; `end` is where the body begins in what was read."""

    method: str
    target: bytes
    headers: list[tuple[bytes, bytes]]
    length: int
    end: int


def read_plain(data: bytes) -> Plain | None:
    """The head of the plain request that `data` begins with; None for anything else, and for half a head."""
    found = _HEAD.match(data)
    if found is None:
        return None
    headers: list[tuple[bytes, bytes]] = []
    length = host = None
    for line in found[3].split(b"\r\n")[:-1]:
        name, _, value = line.partition(b":")
        name, value = name.lower(), value.strip(b" \t")
        if name == b"content-length":
            if length is not None or _LENGTH.fullmatch(value) is None:
                return None
            length = int(value)
        elif name == b"host":
            if host is not None:
                return None
            host = value
        elif name in _ODD or (name == b"connection" and value.lower() != b"keep-alive"):
            return None
        headers.append((name, value))
    return None if host is None else Plain(found[1].decode(), found[2], headers, length or 0, found.end())


def scope_of(plain: Plain, connection: dict[str, Any]) -> dict[str, Any]:
    """The ASGI scope; `connection` holds what is the same for every request of one."""
    path, _, query = plain.target.partition(b"?")
    return {
        **connection,
        "type": "http",
        "http_version": "1.1",
        "method": plain.method,
        "path": unquote(path.decode("ascii")) if b"%" in path else path.decode("ascii"),
        "raw_path": path,
        "query_string": query,
        "headers": plain.headers,
        "state": {},
        "extensions": {},
    }


def head_of(status: int, headers: Iterable[tuple[bytes, bytes]]) -> tuple[bytes, bool]:
    """The head of an answer, and whether it is the last one over its connection."""
    lines = [b"HTTP/1.1 %d \r\n" % status]
    last = False
    for name, value in headers:
        lines.append(b"%b: %b\r\n" % (name, value))
        last = last or (name == b"connection" and value == b"close")
    lines.append(b"\r\n")
    return b"".join(lines), last


class Exchange:
    """Gives an app the body of one request and writes what it answers.

    `last` is true once nothing more can come over this connection; else `rest` is what was read beyond the request.
    """

    def __init__(
        self,
        plain: Plain,
        data: bytes,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        added: Iterable[tuple[bytes, bytes]] = (),
    ) -> None:
        end = plain.end + plain.length
        self._reader = reader
        self._writer = writer
        self._added = added
        self._part = data[plain.end : end]
        self._left = plain.length
        self._read = False
        self._head = b""
        self._answered = False
        self._closing = False
        self.rest = data[end:]

    @property
    def last(self) -> bool:
        return self._closing or not self._answered or self._left > 0

    async def receive(self) -> Message:
        """The next part of the body. Whoever goes on after its end is told that the peer has gone."""
        if self._read and self._left == 0:
            return {"type": "http.disconnect"}
        self._read = True
        part, self._part = self._part, b""
        if not part and self._left:
            try:
                part = await self._reader.read(min(self._left, MAX_RECV))
            except OSError:
                part = b""
            if not part:
                self._closing = True
                return {"type": "http.disconnect"}
        self._left -= len(part)
        return {"type": "http.request", "body": part, "more_body": self._left > 0}

    async def send(self, message: Message) -> None:
        """Head and body leave together."""
        if message["type"] == "http.response.start":
            self._head, last = head_of(message["status"], (*message["headers"], *self._added))
            self._closing = self._closing or last
            return
        data, self._head = self._head + message.get("body", b""), b""
        self._answered = not message.get("more_body", False)
        if not data:
            return
        try:
            self._writer.write(data)
            await self._writer.drain()
        except OSError:
            self._closing = True
