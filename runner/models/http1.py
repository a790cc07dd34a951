"""A pool of keep-alive HTTP/1.1 connections to one plain-http endpoint, for the hot chat path.

Measured on one core it costs a third of a call through a general client and a fraction of its memory (see
`benchmarks/transports.py`). It does only what a chat call needs: POST, no redirects, no cookies, no compression.
TLS and proxies go through the library in `transport.py`.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from functools import partial
from typing import Any, TypeAlias, cast

from runner.models.http1_parser import Answer, ProtocolError, ResponseParser, Sink

_CONNECTING = 64
"""Connections opened at once: servers listen with a backlog of 100 or more, and an overflow costs a second each."""
_CONNECT_TIME = 15.0
_IDLE_TIME = 60.0
"""Seconds an idle connection is trusted: some networks forget one without a word."""
_LINGER = 1.0
"""Seconds the end of an event stream may lag behind its `[DONE]` before the connection is given up."""


Request: TypeAlias = tuple[bytes, bytes]
"""The head and the body of one request."""


class StaleConnectionError(ProtocolError):
    """A kept-alive connection ended before a byte of the answer: the request may be sent again."""


class Connection(asyncio.Protocol):
    """One connection, one request at a time."""

    def __init__(self, pool: Pool, loop: asyncio.AbstractEventLoop) -> None:
        self._pool = pool
        self._loop = loop
        self._parser: ResponseParser | None = None
        self._done: asyncio.Future[Answer] | None = None
        self._linger: asyncio.TimerHandle | None = None
        self.transport: asyncio.Transport | None = None
        self._reusable = False
        self.used = False
        self.idle_since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport = cast("asyncio.Transport", transport)  # uvloop's is one by shape only
        self.transport = transport
        self._pool.open.add(self)

    async def exchange(self, request: Request, end: float, limit: int, sink: Sink | None) -> Answer:
        """Send one request and wait for its answer until `end`, on the loop's clock.

        Raises TimeoutError, ProtocolError, OSError.
        """
        assert self.transport is not None
        self._parser = ResponseParser(limit, sink)
        self._done = self._loop.create_future()
        self.transport.writelines(request)
        timer = self._loop.call_at(end, self._time_out)
        try:
            answer = await self._done
        except BaseException:
            self.close()  # an answer nobody waits for must not meet the next request
            raise
        finally:
            timer.cancel()
        if self._reusable and self.transport is not None:
            self.idle_since = self._loop.time()
            self._pool.keep(self)
        else:
            self.close()
        return answer

    def data_received(self, data: bytes) -> None:
        parser = self._parser
        if parser is None:
            if self._linger is None:
                self.close()  # nothing was asked
            return
        try:
            finished = parser.feed(data)
        except Exception as error:  # the sink's own error belongs to whoever waits
            self._fail(error)
            return
        if parser.answer is not None:
            self._finish(finished)

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
        done, self._done, self._parser = self._done, None, None
        self.close()
        if done is not None and not done.done():
            done.set_exception(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self._pool.forget(self)
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


class Pool:
    """Connections to `host:port`. `post` is safe for any number of callers on one loop."""

    def __init__(self, host: str, port: int) -> None:
        self._host = host
        self._port = port
        self._idle: deque[Connection] = deque()
        self._addresses: list[tuple[Any, ...]] = []
        self._resolving: asyncio.Task[list[tuple[Any, ...]]] | None = None
        self._connecting = asyncio.Semaphore(_CONNECTING)
        self.open: set[Connection] = set()

    async def post(self, request: Request, seconds: float, limit: int, sink: Sink | None = None) -> Answer:
        """Send one request, all within `seconds`. Raises TimeoutError, ProtocolError, OSError.

        A kept-alive connection that turns out dead is replaced, once, by a new one.
        """
        now = asyncio.get_running_loop().time()
        end = now + seconds
        connection = self._pop_idle(now - _IDLE_TIME)
        if connection is not None:
            try:
                return await connection.exchange(request, end, limit, sink)
            except StaleConnectionError:
                pass
        async with asyncio.timeout_at(end):
            connection = await self._connect()
        return await connection.exchange(request, end, limit, sink)

    def keep(self, connection: Connection) -> None:
        self._idle.append(connection)

    def forget(self, connection: Connection) -> None:
        self.open.discard(connection)

    def _pop_idle(self, oldest: float) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.transport is None or connection.transport.is_closing():
                continue
            if connection.idle_since < oldest:
                connection.close()
                continue
            return connection
        return None

    async def _connect(self) -> Connection:
        loop = asyncio.get_running_loop()
        made = partial(Connection, self, loop)
        async with self._connecting:
            failure: OSError | None = None
            for address in await self._resolve():
                try:
                    async with asyncio.timeout(_CONNECT_TIME):
                        _, connection = await loop.create_connection(made, address[0], address[1])
                except TimeoutError:
                    failure = OSError(f"no connection within {_CONNECT_TIME:g} s")
                except OSError as error:
                    failure = error
                else:
                    # The address that works goes first from now on.
                    self._addresses = [address, *(other for other in self._addresses if other != address)]
                    return connection
            self._addresses = []  # asked again next time: names move
            raise failure or OSError("the name has no address")

    async def _resolve(self) -> list[tuple[Any, ...]]:
        """Numeric addresses of the host, looked up once: each look-up would take a thread."""
        if self._addresses:
            return list(self._addresses)
        if self._resolving is None:
            self._resolving = asyncio.ensure_future(self._look_up())
            self._resolving.add_done_callback(self._looked_up)
        return await asyncio.shield(self._resolving)

    async def _look_up(self) -> list[tuple[Any, ...]]:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(info[4] for info in found))

    def _looked_up(self, task: asyncio.Task[list[tuple[Any, ...]]]) -> None:
        self._resolving = None
        if not task.cancelled() and task.exception() is None:
            self._addresses = task.result()

    async def aclose(self) -> None:
        """Drop every connection."""
        if self._resolving is not None:
            self._resolving.cancel()
        for connection in list(self.open):
            connection.close()
        self._idle.clear()
        if self.open:
            await asyncio.sleep(0)  # lets the loop close the sockets
