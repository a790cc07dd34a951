"""The HTTP/1.1 side of the test double: bytes in, requests out, answers written in order.

A plain `asyncio.Protocol` without a framework, so that the double is never the bottleneck of a benchmark. A request
that can be answered at once is answered inside `data_received`, without a task; pipelined requests wait their turn.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

MAX_HEAD = 64 * 1024
MAX_BODY = 256 * 1024 * 1024


class BadRequest(Exception):
    """The peer does not speak HTTP/1.1. `status` is what to answer before closing."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(slots=True)
class Request:
    """One request. `headers` has lower-case names; of a repeated header the last one counts."""

    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    keep_alive: bool = True


class RequestParser:
    """Incremental: `feed` bytes as they come, `next` gives the next complete request or None."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._request: Request | None = None
        self._length: int | None = 0
        self._chunks: list[bytes] = []

    def feed(self, data: bytes) -> None:
        self._buffer += data

    @property
    def buffered(self) -> int:
        return len(self._buffer)

    def wants_continue(self) -> bool:
        """Whether a request waits for `100 Continue` before it sends its body."""
        request = self._request
        return request is not None and request.headers.pop("expect", "").lower() == "100-continue"

    def next(self) -> Request | None:
        """The next complete request. Raises BadRequest."""
        if self._request is None and not self._read_head():
            return None
        assert self._request is not None
        done = self._read_chunks() if self._length is None else self._read_body(self._length)
        if not done:
            return None
        request, self._request = self._request, None
        return request

    def _read_head(self) -> bool:
        buffer = self._buffer
        while buffer.startswith(b"\r\n"):
            del buffer[:2]
        end = buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(buffer) > MAX_HEAD:
                raise BadRequest(431, "the request head is larger than 64 KiB")
            return False
        lines = bytes(buffer[:end]).decode("latin-1").split("\r\n")
        del buffer[: end + 4]
        request = _head(lines)
        self._length = _body_length(request.headers)
        self._request = request
        return True

    def _read_body(self, length: int) -> bool:
        assert self._request is not None
        if len(self._buffer) < length:
            return False
        self._request.body = bytes(self._buffer[:length])
        del self._buffer[:length]
        return True

    def _read_chunks(self) -> bool:
        assert self._request is not None
        while True:
            line_end = self._buffer.find(b"\r\n")
            if line_end < 0:
                return False
            try:
                size = int(bytes(self._buffer[:line_end]).split(b";")[0], 16)
            except ValueError:
                raise BadRequest(400, "a chunk has no size") from None
            if sum(map(len, self._chunks)) + size > MAX_BODY:
                raise BadRequest(413, "the body is larger than 256 MiB")
            # The last chunk is followed by trailers; we accept none but the empty line.
            if len(self._buffer) < line_end + 2 + size + 2:
                return False
            self._chunks.append(bytes(self._buffer[line_end + 2 : line_end + 2 + size]))
            del self._buffer[: line_end + 2 + size + 2]
            if size == 0:
                self._request.body = b"".join(self._chunks)
                self._chunks = []
                return True


def _head(lines: list[str]) -> Request:
    parts = lines[0].split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        raise BadRequest(400, "the request line is not HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            raise BadRequest(400, "a header line has no colon")
        headers[name.strip().lower()] = value.strip()
    connection = headers.get("connection", "").lower()
    keep_alive = connection != "close" if parts[2] == "HTTP/1.1" else connection == "keep-alive"
    return Request(parts[0], parts[1], headers, keep_alive=keep_alive)


def _body_length(headers: dict[str, str]) -> int | None:
    """Bytes of the body, or None for a chunked one."""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return None
    text = headers.get("content-length", "0")
    if not text.isdigit():
        raise BadRequest(400, "Content-Length is not a number")
    if int(text) > MAX_BODY:
        raise BadRequest(413, "the body is larger than 256 MiB")
    return int(text)


_REASONS = {status.value: status.phrase for status in HTTPStatus}


def response(
    status: int, body: bytes, content_type: str = "application/json", headers: tuple[tuple[str, str], ...] = ()
) -> bytes:
    """A whole response with its length."""
    extra = "".join(f"{name}: {value}\r\n" for name, value in headers)
    head = (
        f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}\r\ncontent-type: {content_type}\r\n"
        f"content-length: {len(body)}\r\n{extra}\r\n"
    )
    return head.encode("latin-1") + body


class Connection(asyncio.Protocol):
    """One client. `handle(connection, request)` must, now or later, call `finish` exactly once for each request."""

    def __init__(
        self,
        handle: Callable[[Connection, Request], None],
        open_connections: set[Connection],
        lost: Callable[[Connection], None],
    ) -> None:
        self._handle = handle
        self._open = open_connections
        self._lost = lost
        self._parser = RequestParser()
        self._request: Request | None = None
        self.transport: asyncio.Transport | None = None
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None

    @property
    def busy(self) -> bool:
        return self._request is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._open.discard(self)
        if self.timer is not None:
            self.timer.cancel()
        if self.task is not None:
            self.task.cancel()
        if self.busy:
            self._request = None
            self._lost(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed(data)
        if not self.busy:
            self._advance()
        elif self._parser.buffered > MAX_HEAD and self.transport is not None:
            self.transport.pause_reading()

    def _advance(self) -> None:
        """Answer what has arrived, one request at a time."""
        while self.transport is not None and not self.busy:
            try:
                request = self._parser.next()
            except BadRequest as error:
                self.transport.write(
                    response(error.status, str(error).encode(), "text/plain", (("connection", "close"),))
                )
                self.transport.close()
                return
            if request is None:
                if self._parser.wants_continue():
                    self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                self.transport.resume_reading()
                return
            self._request = request
            self._handle(self, request)

    def write(self, data: bytes) -> None:
        """Send a part of an answer; nothing if the client has gone."""
        if self.transport is not None:
            self.transport.write(data)

    def finish(self, data: bytes = b"") -> None:
        """End the answer of the current request with `data`, then take the next one."""
        request, self._request = self._request, None
        self.timer = self.task = None
        if self.transport is None or request is None:
            return
        if data:
            self.transport.write(data)
        if not request.keep_alive:
            self.transport.close()
        elif self._parser.buffered:
            # From the loop, not from here: a thousand pipelined requests must not be a thousand frames deep.
            asyncio.get_running_loop().call_soon(self._advance)

    def drop(self) -> None:
        """Forget the current request: no answer will be finished."""
        self._request = None

    def abort(self) -> None:
        """Drop the connection without a goodbye."""
        if self.transport is not None:
            self.transport.abort()

    def reset(self) -> None:
        """Drop the connection with a TCP reset."""
        if self.transport is not None:
            raw = self.transport.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.transport.abort()

    def close(self) -> None:
        """Close the connection after what was written."""
        if self.transport is not None:
            self.transport.close()
