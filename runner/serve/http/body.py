"""A request's body, whole and decoded: within its size, within its time, and a JSON object, or refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from runner.serve.json_text import LARGE, loads
from runner.serve.start import Refused
from runner.serve.urls import field_error

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]

_LINGER = 2.0
"""Seconds that the rest of a refused body is read and thrown away: a connection that is closed with bytes unread is
reset, and the answer may be lost with it."""
_LINGER_BYTES = 8 * 2**20


class Gone(Exception):
    """The peer hung up before its request was whole: there is nobody to answer."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """`most` in bytes, `seconds` for the whole body to arrive."""

    most: int = 64 * 2**20
    seconds: float = 60.0


class Body(Protocol):
    """What a request brings. `ended`: all of it has been taken."""

    content_type: bytes
    encoding: bytes
    ended: bool

    async def read(self, limits: BodyLimits) -> bytes:
        """The whole body. Raises `Refused` (413, 408) and `Gone`."""
        ...


class Arrived:
    """A body that came whole with its head: nothing is waited for, and nothing is left to come."""

    __slots__ = ("_whole", "content_type", "encoding", "ended")

    def __init__(self, whole: bytes, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._whole = whole
        self.content_type = self.encoding = b""
        for name, value in headers:
            if name == b"content-type":
                self.content_type = value
            elif name == b"content-encoding":
                self.encoding = value
        self.ended = True

    async def read(self, limits: BodyLimits) -> bytes:
        """The whole body. Raises `Refused` (413)."""
        if len(self._whole) > limits.most:
            raise _too_large(limits.most)
        return self._whole


class Incoming:
    """The body of one request as it arrives."""

    def __init__(self, receive: Receive, headers: Iterable[tuple[bytes, bytes]], http1: bool) -> None:
        self._receive = receive
        self._declared: int | None = None
        self.content_type = self.encoding = b""
        for name, value in headers:
            if name == b"content-length" and value.isdigit():
                self._declared = int(value)
            elif name == b"content-type":
                self.content_type = value
            elif name == b"content-encoding":
                self.encoding = value
        # Over HTTP/1 the declared length ends a body; HTTP/2 may send its end apart.
        self._counted = http1 and self._declared is not None
        self.ended = self._left = False

    async def read(self, limits: BodyLimits) -> bytes:
        """The whole body. Raises `Refused` (413, 408) and `Gone`."""
        if self._declared is not None and self._declared > limits.most:
            raise _too_large(limits.most)
        try:
            async with asyncio.timeout(limits.seconds):
                return await self._gather(limits.most)
        except TimeoutError:
            text = f"the request did not arrive within {limits.seconds:g} s"
            raise Refused(408, text, {"connection": "close"}) from None

    async def _gather(self, most: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        while not self.ended:
            part = await self._next()
            size += len(part)
            if size > most:
                raise _too_large(most)
            parts.append(part)
            if self._counted and size == self._declared:
                break
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _next(self) -> bytes:
        if self._left:
            raise Gone  # it is said once only
        message = await self._receive()
        if message["type"] != "http.request":
            self.ended = self._left = True
            raise Gone
        self.ended = not message.get("more_body", False)
        part: bytes = message.get("body", b"")
        return part

    async def gone(self) -> None:
        """Return when the peer has hung up; what it sends meanwhile is forgotten."""
        try:
            while True:
                await self._next()
        except Gone:
            return

    async def discard(self) -> bool:
        """Read what is left of a refused body and forget it. Whether the end came, so that the connection may go on."""
        left = _LINGER_BYTES
        try:
            async with asyncio.timeout(_LINGER):
                while not self.ended and left > 0:
                    left -= len(await self._next())
        except (TimeoutError, Gone):
            return False
        return self.ended


async def decode(raw: bytes, content_type: bytes, encoding: bytes) -> Mapping[str, Any]:
    """`decoded`, a large body in a thread."""
    if len(raw) < LARGE:
        return decoded(raw, content_type, encoding)
    return await asyncio.to_thread(decoded, raw, content_type, encoding)


def decoded(raw: bytes, content_type: bytes, encoding: bytes) -> Mapping[str, Any]:
    """The JSON object in a body. Raises `Refused` (422, and 415 for a body that is compressed)."""
    if encoding and encoding.strip().lower() != b"identity":
        raise Refused(415, "a compressed body is not understood; send it as it is", {"accept-encoding": "identity"})
    if content_type and not _is_json(content_type):
        raise _unreadable("content_type", "the body must be sent as Content-Type: application/json")
    try:
        found = loads(raw)
    except UnicodeDecodeError as error:
        raise _unreadable("json_invalid", f"the body is not UTF-8: byte {error.start}") from None
    except json.JSONDecodeError as error:
        text = f"the body is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise _unreadable("json_invalid", text) from None
    except RecursionError:
        raise too_deep() from None
    except ValueError:  # a number of more digits than Python reads
        raise _unreadable("json_invalid", "the body holds a number that is too long to be read") from None
    if not isinstance(found, dict):
        raise _unreadable("dict_type", "the body must be a JSON object")
    return found


def too_deep() -> Refused:
    """What a body is refused with that is nested deeper than we can follow."""
    return _unreadable("json_invalid", "the body is nested too deeply")


def _is_json(content_type: bytes) -> bool:
    kind = content_type.partition(b";")[0].strip().lower()
    return kind == b"application/json" or (kind.startswith(b"application/") and kind.endswith(b"+json"))


def _unreadable(kind: str, message: str) -> Refused:
    return Refused(422, field_error("", kind, message))


def _too_large(most: int) -> Refused:
    return Refused(413, f"the body is larger than the {most} bytes that `[serve] max_body` allows")
