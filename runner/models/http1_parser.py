"""An incremental HTTP/1.1 response parser: bytes in, one `Answer` out. Pure; no sockets.

It understands what a server may send to a POST: interim 1xx answers, lengths, chunks, and bodies that end with the
connection. Everything it holds is bounded by `MAX_HEAD` and the caller's limit for bodies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

MAX_HEAD = 64 * 1024
_MAX_CHUNK_LINE = 1024

_BRIEF = re.compile(
    rb"HTTP/1\.1 (2[0-9][0-9])(?: [^\r\n]*)?"
    rb"(?:\r\n(?!content-length:|transfer-encoding:|content-encoding:|connection:)[!-9;-~]+:[^\r\n]*)*"
    rb"\r\ncontent-length:[ \t]*([0-9]{1,9})[ \t]*"
    rb"(?:\r\n(?!content-length:|transfer-encoding:|content-encoding:|connection:)[!-9;-~]+:[^\r\n]*)*",
    re.IGNORECASE,
)
"""The head of an answer whose body has a length, is sent as it is, and ends nothing."""

Sink: TypeAlias = Callable[[bytes], bool]
"""Takes the next part of an event stream; True means: that was all I need."""


class ProtocolError(Exception):
    """The peer does not speak HTTP/1.1 or broke off. `status` is that of the answer, if its head had arrived."""

    status: int | None = None


class TooLargeError(ProtocolError):
    """The body is larger than the caller allows."""


@dataclass(slots=True)
class Answer:
    """One HTTP answer. `headers` has lower-case names. `body` is empty when a sink took it.

    `whole` is False where the status was what mattered and the body came to more, or less, than could be read.
    """

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool = True


class ResponseParser:
    """Feed it bytes until `answer` is set. `sink` gets the body of a 200 `text/event-stream` as it arrives.

    With `whole=False` the status is what matters: of a body beyond `limit`, its start is the answer.
    """

    __slots__ = (
        "_body", "_buffer", "_headers", "_limit", "_mode", "_remaining", "_sink", "_size", "_status", "_whole", "answer"
    )  # fmt: skip

    def __init__(self, limit: int, sink: Sink | None = None, whole: bool = True) -> None:
        self.answer: Answer | None = None
        self._limit = limit
        self._sink = sink
        self._whole = whole
        self._buffer = b""
        self._body: list[bytes] = []
        self._size = 0
        self._remaining = 0
        self._status = 0
        self._headers: dict[str, str] = {}
        self._mode = ""  # then one of "length", "chunks", "end"

    @property
    def started(self) -> bool:
        """Whether any byte of an answer has arrived."""
        return self._status != 0 or bool(self._buffer)

    @property
    def status(self) -> int:
        """The status, once the head has arrived; 0 before."""
        return self._status

    @property
    def rest(self) -> bytes:
        """Bytes beyond the answer: a well-behaved server sends none."""
        return self._buffer

    def reusable(self) -> bool:
        """Whether the connection may carry another request after this answer."""
        return self._mode != "end" and not self._buffer and self._headers.get("connection", "").lower() != "close"

    def feed(self, data: bytes) -> bool:
        """Take the next bytes; True when the answer is complete. Raises ProtocolError."""
        if self._mode == "length" and not self._buffer and len(data) <= self._remaining:
            self._take(data)  # the middle of a large body: no copy of what came before
            self._remaining -= len(data)
            return self._remaining == 0 and self._finish()
        self._buffer = self._buffer + data if self._buffer else data
        while not self._mode:
            if not self._read_head():
                return False
        if self._mode == "length":
            return self._read_length()
        return self._read_chunks() if self._mode == "chunks" else self._read_to_end()

    def settle_for_less(self) -> bool:
        """Make an answer of what has arrived, if that is enough: the head, where the body may be cut."""
        if self._whole or not self._status:
            return False
        self._mode = "end"  # whatever else arrives belongs to this answer: the connection is spent
        self._finish()
        assert self.answer is not None
        self.answer.whole = False
        return True

    def feed_eof(self) -> None:
        """The connection ended. Raises ProtocolError if the answer had not."""
        if self._mode == "end":
            self._finish()
        if self.answer is None:
            raise ProtocolError("the connection was closed in the middle of the answer")

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > MAX_HEAD:
                raise ProtocolError("the head of the answer is larger than 64 KiB")
            return False
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        self._buffer = self._buffer[end + 4 :]
        status = _status(lines[0])
        if 100 <= status < 200 and status != 101:
            return bool(self._buffer)
        self._status = status
        self._headers = headers = _headers(lines)
        if self._sink is not None and not is_event_stream(status, headers):
            self._sink = None
        self._choose_body(lines[0])
        return True

    def _choose_body(self, status_line: str) -> None:
        headers = self._headers
        if headers.get("content-encoding", "identity").lower() != "identity":
            raise ProtocolError(f"the answer is encoded as {headers['content-encoding']!r}, which was not asked for")
        if "chunked" in headers.get("transfer-encoding", "").lower():
            self._mode = "chunks"
        elif self._status in (204, 304):
            self._remaining = 0
            self._mode = "length"
        elif "content-length" in headers:
            length = headers["content-length"]
            if not length.isascii() or not length.isdigit():
                raise ProtocolError("Content-Length is not a number")
            self._remaining = int(length)
            if self._remaining > self._limit and self._whole:
                raise TooLargeError
            self._mode = "length"
        else:
            self._mode = "end"
        if status_line.startswith("HTTP/1.0") and headers.get("connection", "").lower() != "keep-alive":
            headers["connection"] = "close"

    def _take(self, data: bytes) -> None:
        self._size += len(data)
        if self._size > self._limit:
            if not self._whole:
                self._body.append(data[: len(data) - (self._size - self._limit)])
            raise TooLargeError
        if self._sink is None:
            self._body.append(data)
        elif data and self.answer is None and self._sink(data):
            self._finish()

    def _finish(self) -> bool:
        if self.answer is None:
            body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            self._body = []
            self.answer = Answer(self._status, self._headers, body)
        return True

    def _read_length(self) -> bool:
        data, self._buffer = self._buffer[: self._remaining], self._buffer[self._remaining :]
        self._remaining -= len(data)
        self._take(data)
        return self._remaining == 0 and self._finish()

    def _read_to_end(self) -> bool:
        data, self._buffer = self._buffer, b""
        self._take(data)
        return False

    def _read_chunks(self) -> bool:
        # `_remaining` counts what is missing of the current chunk with its line end; -1: in the trailers.
        while self._buffer:
            if self._remaining > 0:
                self._read_chunk_data()
                continue
            line, newline, rest = self._buffer.partition(b"\r\n")
            if not newline:
                if len(line) > _MAX_CHUNK_LINE:
                    raise ProtocolError("a chunk has no size")
                return False
            self._buffer = rest
            if self._remaining < 0:
                if not line:
                    return self._finish()
                continue
            size = _chunk_size(line)
            self._remaining = size + 2 if size else -1
        return False

    def _read_chunk_data(self) -> None:
        part, self._buffer = self._buffer[: self._remaining], self._buffer[self._remaining :]
        payload = part[: max(0, self._remaining - 2)]
        if part[len(payload) :] not in (b"", b"\r", b"\n", b"\r\n"):
            raise ProtocolError("a chunk is longer than its size")
        self._remaining -= len(part)
        if payload:
            self._take(payload)


def brief(data: bytes, limit: int) -> Answer | None:
    """A 2xx in `data`, whole and of the plainest kind, without its headers; None for anything else, and for a part.

    Nearly all that acknowledges something is one. Whoever wants to know a header parses it.
    """
    end = data.find(b"\r\n\r\n")
    if end < 0 or not data.startswith(b"HTTP/1.1 2"):
        return None
    found = _BRIEF.fullmatch(data, 0, end)
    if found is None:
        return None
    status, length, size = int(found[1]), int(found[2]), len(data) - end - 4
    return Answer(status, {}, data[end + 4 :]) if length == size <= limit and status != 204 else None


def is_event_stream(status: int, headers: Mapping[str, str]) -> bool:
    """Whether an answer says that it is a stream of events."""
    return status == 200 and "text/event-stream" in headers.get("content-type", "").lower()


def _status(line: str) -> int:
    parts = line.split(" ", 2)
    if not line.startswith("HTTP/1.") or len(parts) < 2 or not (parts[1].isdigit() and len(parts[1]) == 3):
        raise ProtocolError("the answer is not HTTP/1.1")
    return int(parts[1])


def _headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if not colon:
            raise ProtocolError("a header of the answer has no colon")
        headers[name.lower()] = value.strip()
    return headers


def _chunk_size(line: bytes) -> int:
    text = line.split(b";", 1)[0].strip()
    try:
        size = int(text, 16)
    except ValueError:
        raise ProtocolError("a chunk has no size") from None
    if size < 0:
        raise ProtocolError("a chunk has no size")
    return size
