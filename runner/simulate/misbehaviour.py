"""How a request is answered wrongly: each fault's bytes, or their absence."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from email.utils import formatdate
from time import time

from pydantic_core import to_json

from runner.models.double_answer import completion
from runner.models.double_http import Connection, response
from runner.simulate.answers import failed

_PAGE = b"<!doctype html><html><body><h1>It works</h1></body></html>"
_HUGE = 9 * 1024 * 1024
_LATE = 1.0
_WAIT = 1.0
"""What Retry-After asks for, in seconds. As a date it asks for two: dates have no fractions."""


@dataclass(frozen=True, slots=True)
class Took:
    """What a fault left: whether an acknowledgement went out whole, how long to stay away, whether it may be final."""

    acknowledged: bool = False
    wait: float | None = None
    final: bool = False


class Misbehaviour:
    """Commits faults. `stall` is how long a request is held; `elsewhere` the path that redirects lead to."""

    def __init__(self, stall: float, elsewhere: str) -> None:
        self._stall = stall
        self._elsewhere = elsewhere

    def callback(self, connection: Connection, fault: str, ack: bytes) -> Took:
        """Answer a callback wrongly; `ack` is what it should have got."""
        kind, _, how = fault.partition("-")
        if kind == "ack":
            return self._acknowledge(connection, how, ack)
        if how == "429":
            connection.finish(response(429, b"{}", headers=(("retry-after", f"{_WAIT:g}"),)))
            return Took(wait=_WAIT)
        if how == "429-date":
            when = formatdate(time() + 2 * _WAIT, usegmt=True)
            connection.finish(response(429, b"{}", headers=(("retry-after", when),)))
            return Took(wait=_WAIT)
        if how == "307":
            connection.finish(response(307, b"", headers=(("location", f"{self._elsewhere}/callback"),)))
        elif how == "stall":
            self._hold(connection)
        elif how == "reset":
            _end(connection, reset=True)
        else:
            connection.finish(response(int(how), b'{"detail":"a fault that was asked for"}'))
        return Took(final=how not in ("stall", "reset") and int(how) < 500)

    def _acknowledge(self, connection: Connection, how: str, ack: bytes) -> Took:
        if how == "drop":
            _end(connection, reset=False)
            return Took()
        if how == "late":
            connection.timer = asyncio.get_running_loop().call_later(_LATE, connection.finish, response(200, ack))
        elif how == "huge":
            connection.finish(response(200, b"x" * _HUGE, "text/plain"))
            return Took(final=True)  # a server may well give up on it
        elif how == "html":
            connection.finish(response(200, _PAGE, "text/html"))
        elif how == "empty":
            connection.finish(response(200, b""))
        else:
            connection.finish(response(int(how), b""))
        return Took(acknowledged=how != "late", final=True)

    def chat(self, connection: Connection, fault: str, *, stream: bool) -> None:
        """Answer a chat call wrongly."""
        how = fault.removeprefix("chat-")
        if how == "429":
            connection.finish(response(429, b'{"error":{"message":"slow down"}}', headers=(("retry-after", "1"),)))
        elif how == "stall":
            self._hold(connection)
        elif how == "reset":
            _end(connection, reset=True)
        elif how == "cut":
            whole = response(200, to_json(completion({}, "this answer will not be finished")))
            connection.write(whole[: len(whole) * 2 // 3])
            _end(connection, reset=False)
        elif how == "garbage":
            connection.finish(response(200, _PAGE, "text/html"))
        elif how == "empty":
            connection.finish(response(200, to_json({**completion({}, ""), "choices": []})))
        elif how == "error":
            status, body, kind = failed(stream, "a fault that was asked for")
            connection.finish(event_stream(body) if kind == "text/event-stream" else response(status, body))
        else:
            connection.finish(response(int(how), b'{"error":{"message":"a fault that was asked for"}}'))

    def _hold(self, connection: Connection) -> None:
        connection.timer = asyncio.get_running_loop().call_later(self._stall, _end, connection)


def _end(connection: Connection, reset: bool = True) -> None:
    connection.drop()
    if reset:
        connection.reset()
    else:
        connection.close()


def event_stream(body: bytes) -> bytes:
    """A chunked event stream under status 200: servers do not know its length beforehand."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
