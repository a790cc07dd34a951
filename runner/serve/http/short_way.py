"""`ShortWay`: a connection while all its requests are plain, and come whole in one piece: no streams, no waiting.

That is how nearly every start comes. With the first request that is anything else, the connection goes on with streams,
for good (`worker.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from runner.models.outgoing import Outgoing
from runner.serve.http.app import App
from runner.serve.http.plain import MAX_RECV, head_of, read_plain, scope_of


@dataclass(slots=True, eq=False)
class Ways:
    """What the connections of a process share. `patience` is how long one may be idle, in seconds; `most` how many
    requests one may carry; `longest` how many bytes a head may have.

    `streams` makes what takes a connection over, told how many more requests it may carry. `changed` is called when one
    has ended; `open` holds those that have not, `outgoing` what they have to write in this turn of the loop. `ending`
    closes them as they are answered.
    """

    app: App
    added: list[tuple[bytes, bytes]]
    root_path: str
    patience: float
    most: int
    longest: int
    streams: Callable[[int], asyncio.Protocol]
    changed: Callable[[], None]
    open: set[ShortWay] = field(default_factory=set)
    outgoing: Outgoing = field(default_factory=Outgoing)
    ending: bool = False


class ShortWay(asyncio.Protocol):
    """One connection; one request of it is answered at a time."""

    def __init__(self, ways: Ways, loop: asyncio.AbstractEventLoop) -> None:
        self._ways = ways
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._shared: dict[str, Any] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._idle_since = 0.0
        self._task: asyncio.Task[None] | None = None  # one for all its requests: to make one costs 4 us
        self._next: tuple[dict[str, Any], bytes] | None = None
        self._wake: asyncio.Future[None] | None = None
        self._left = ways.most
        self._unread = b""
        self._busy = self._paused = self._full = self._over = False

    # What the event loop says

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It begins."""
        transport = cast("asyncio.Transport", transport)  # uvloop's is one by shape only
        self._transport = transport
        self._ways.open.add(self)
        self._shared = {
            "asgi": {"spec_version": "2.1", "version": "3.0"},
            "scheme": "http",
            "root_path": self._ways.root_path,
            "client": transport.get_extra_info("peername"),
            "server": transport.get_extra_info("sockname"),
        }
        self._idle_since = self._loop.time()
        self._timer = self._loop.call_later(self._ways.patience, self._look)
        self.hush()

    def data_received(self, data: bytes) -> None:
        """Bytes came. While a request is being answered, or its answer not taken, they wait, and soon their sender."""
        if not self._busy and not self._full:
            self._read(data)
            return
        self._unread += data
        if len(self._unread) > MAX_RECV and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        """Nothing more will come; what was asked is still answered."""
        self._over = True
        if not self._busy and not self._full:
            self._close()
        return True

    def pause_writing(self) -> None:
        """Its peer does not take what is written."""
        self._full = True

    def resume_writing(self) -> None:
        """Its peer takes it again."""
        self._full = False
        if not self._busy:
            self._go_on()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended. What is being answered goes on to its end all the same."""
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._go()
        self._leave()

    # What the process says

    def hush(self) -> None:
        """Close it if the process is ending and nothing is being answered."""
        if self._ways.ending and not self._busy:
            self._close()

    def cut(self) -> None:
        """End it now."""
        if self._transport is not None and not self._busy:
            self._transport.abort()
        elif self._task is not None:
            self._task.cancel()

    # Its requests

    def _read(self, data: bytes) -> None:
        plain, ways = read_plain(data), self._ways
        if plain is None or plain.end > ways.longest or len(data) < plain.end + plain.length:
            self._hand_over(data)
            return
        end = plain.end + plain.length
        self._unread = data[end:]
        self._next, self._busy = (scope_of(plain, self._shared), data[plain.end : end]), True
        if self._task is None:
            self._task = self._loop.create_task(self._answer_all())
        else:
            self._go()

    async def _answer_all(self) -> None:
        try:
            while self._next is not None:
                (scope, body), self._next = self._next, None
                self._say(*await self._ways.app.reply(scope, body))
                del scope, body  # or they stay until the next request comes
                if self._next is None and self._transport is not None:
                    self._wake = self._loop.create_future()
                    await self._wake
        except BaseException:
            if self._transport is not None:
                self._transport.abort()
            raise
        finally:
            self._task = self._wake = None
            self._busy = False
            self._leave()

    def _go(self) -> None:
        """Let its task go on: a request has come, or none will come any more."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _say(self, status: int, headers: list[tuple[bytes, bytes]], said: bytes) -> None:
        """Write an answer, and take the next request if it has come."""
        self._busy = False
        transport = self._transport
        if transport is None:
            return
        head, last = head_of(status, (*headers, *self._ways.added))
        self._ways.outgoing.write(self._loop, transport, (head + said,))
        self._left -= 1
        if last or self._ways.ending or self._left <= 0:
            self._close()
        elif not self._full:
            self._go_on()

    def _go_on(self) -> None:
        """Take the next request, or wait for it."""
        transport, data = self._transport, self._unread
        if transport is None or transport.is_closing():
            return
        if self._paused:
            self._paused = False
            transport.resume_reading()
        self._idle_since = self._loop.time()
        if data:
            self._unread = b""
            self._read(data)
        elif self._over:
            self._close()

    def _close(self) -> None:
        """End it, with all that was said."""
        if self._transport is not None:
            self._ways.outgoing.flush()
            self._transport.close()

    def _hand_over(self, data: bytes) -> None:
        transport = self._transport
        assert transport is not None and self._timer is not None
        self._timer.cancel()
        self._ways.outgoing.flush()
        self._transport = self._timer = None
        streams = self._ways.streams(self._left)
        transport.set_protocol(streams)
        streams.connection_made(transport)
        streams.data_received(data)
        if self._over:
            streams.eof_received()
        self._go()
        self._leave()

    def _look(self) -> None:
        """Close it if it has been idle for too long. One timer for all its requests: most are answered long before."""
        if self._transport is None:
            return
        left = self._ways.patience
        if not self._busy and not self._full:
            left -= self._loop.time() - self._idle_since
            if left <= 0.001:
                self._close()
                return
        self._timer = self._loop.call_later(left, self._look)

    def _leave(self) -> None:
        if self._task is None and self._transport is None:
            self._ways.open.discard(self)
            self._ways.changed()
