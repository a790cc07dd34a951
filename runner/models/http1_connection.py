"""One HTTP/1.1 connection to a plain-http endpoint: a request out, its answer back, one at a time.

Whoever keeps connections (`http1.py`) is told when one is free and when it has ended.
"""

from __future__ import annotations

import asyncio
from typing import Protocol, TypeAlias, cast

from runner.models.http1_parser import Answer, ProtocolError, ResponseParser, Sink, brief
from runner.models.outgoing import Outgoing
from runner.records.quick import quick

_LINGER = 1.0
"""Seconds the end of an event stream may lag behind its `[DONE]` before the connection is given up."""


Request: TypeAlias = tuple[bytes, bytes]
"""The head and the body of one request."""


@quick
class Bounds:
    """How long an exchange may take, in seconds, and how large its answer may be, in bytes.

    With `body_wait` the status is what matters: its body may take so many seconds more, and is read only as far as it
    comes. Without, an answer is whole or an error.
    """

    seconds: float
    size: int
    body_wait: float | None = None


class Keeper(Protocol):
    """Who holds connections."""

    open: set[Connection]
    outgoing: Outgoing

    def keep(self, connection: Connection) -> None: ...

    def forget(self, connection: Connection) -> None: ...


class StaleConnectionError(ProtocolError):
    """A kept-alive connection ended before a byte of the answer: the request may be sent again."""


class Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, keeper: Keeper, loop: asyncio.AbstractEventLoop) -> None:
        self._keeper = keeper
        self._loop = loop
        self._parser: ResponseParser | None = None
        self._done: asyncio.Future[Answer] | None = None
        self._linger: asyncio.TimerHandle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._body_wait: float | None = None
        self._size = 0
        self.transport: asyncio.Transport | None = None
        self._reusable = False
        self.used = False
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)  # uvloop's is one by shape only
        self.transport = transport
        self._keeper.open.add(self)

    async def exchange(self, request: Request, end: float, bounds: Bounds, sink: Sink | None) -> Answer:
        """Send one request and wait for its answer until `end`, on the loop's clock.

        Raises TimeoutError, ProtocolError, OSError.
        """
        assert self.transport is not None
        self._parser = ResponseParser(bounds.size, sink, bounds.body_wait is None)
        self._done = self._loop.create_future()
        self._body_wait, self._size = bounds.body_wait, bounds.size
        self._keeper.outgoing.write(self._loop, self.transport, request)
        self._timer = self._loop.call_at(end, self._time_out)
        try:
            answer = await self._done
        except BaseException:
            self.close()  # an answer nobody waits for must not meet the next request
            raise
        finally:
            self._timer.cancel()
        if self._reusable and self.transport is not None:
            self.idle_since = self._loop.time()
            self._keeper.keep(self)
        else:
            self.close()
        return answer

    def data_received(self, data: bytes) -> None:
        parser = self._parser
        if parser is None:
            if self._linger is None:
                self.close()  # nothing was asked
            return
        if self._body_wait is not None and not parser.started:
            parser.answer = brief(data, self._size)
            if parser.answer is not None:
                self._release(reusable=True)
                return
        try:
            finished = parser.feed(data)
        except Exception as error:  # the sink's own error belongs to whoever waits
            self._fail(error)
            return
        if parser.answer is not None:
            self._finish(finished)
        elif self._body_wait is not None and parser.status:
            self._hurry(self._body_wait)

    def _hurry(self, seconds: float) -> None:
        """The status is here: its body may take so long, and no longer than the exchange."""
        assert self._timer is not None
        end, self._body_wait = self._loop.time() + seconds, None
        if end < self._timer.when():
            self._timer.cancel()
            self._timer = self._loop.call_at(end, self._time_out)

    def _finish(self, finished: bool) -> None:
        """Hand the answer over. If the sink had enough before its end, wait a moment for the rest."""
        parser = self._parser
        assert parser is not None
        if not finished:
            if self._linger is None:
                self._linger = self._loop.call_later(_LINGER, self._give_up)
            return
        self._release(parser.reusable())

    def _give_up(self) -> None:
        self._linger = None
        if self._parser is not None:
            self._release(reusable=False)

    def _release(self, reusable: bool) -> None:
        parser, done = self._parser, self._done
        assert parser is not None and done is not None
        if self._linger is not None:
            self._linger.cancel()
        self._parser = self._done = self._linger = None
        self.used = True
        self._reusable = reusable
        if not done.done():
            assert parser.answer is not None
            done.set_result(parser.answer)

    def _time_out(self) -> None:
        if self._done is not None:
            self._fail(TimeoutError())

    def _fail(self, error: Exception) -> None:
        if self._parser is not None:
            if self._parser.settle_for_less():
                self._release(reusable=False)
                return
            if isinstance(error, ProtocolError):
                error.status = self._parser.status or None
        done, self._done, self._parser = self._done, None, None
        self.close()
        if done is not None and not done.done():
            done.set_exception(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._keeper.forget(self)
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        parser = self._parser
        if parser is None:
            return
        try:
            parser.feed_eof()
        except ProtocolError as error:
            if self.used and not parser.started:
                error = StaleConnectionError(str(error))
            elif not parser.started:
                error = ProtocolError("the connection was closed without an answer")
            self._fail(error)
        else:
            self._release(reusable=False)

    def close(self) -> None:
        """Drop the connection now."""
        if self.transport is not None:
            self.transport.abort()
            self.transport = None
