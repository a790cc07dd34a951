"""A pool of keep-alive HTTP/1.1 connections to one plain-http endpoint, for the hot chat path.

Measured on one core it costs a third of a call through a general client and a fraction of its memory (see
`benchmarks/transports.py`). It does only what a chat call needs: POST, no redirects, no cookies, no compression.
TLS and proxies go through the library in `transport.py`.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any

from runner.models.http1_connection import Bounds, Connection, Request, StaleConnectionError
from runner.models.http1_parser import Answer, ProtocolError, Sink
from runner.models.outgoing import Outgoing

if TYPE_CHECKING:
    import ssl

_CONNECTING = 64
"""Connections opened at once: servers listen with a backlog of 100 or more, and an overflow costs a second each."""
_CONNECT_TIME = 15.0
IDLE_TIME = 60.0
"""Seconds an idle connection is trusted: some networks forget one without a word."""


class CrowdedError(ProtocolError):
    """No connection became free in time."""


class Pool:
    """Connections to `host:port`. `post` is safe for any number of callers on one loop.

    At most `max` are open, further posts wait for their turn; at most `idle` are kept while nobody needs them, for
    `idle_time` seconds. With `tls` they are encrypted: what `simulate` needs to ask a server of somebody else.
    `outgoing` is shared by pools whose requests shall leave together.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        max: int | None = None,
        idle: int | None = None,
        idle_time: float = IDLE_TIME,
        tls: ssl.SSLContext | None = None,
        outgoing: Outgoing | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._name = None if tls is None else host  # whose certificate it must be
        self._max = max
        self._keep = idle
        self._idle_time = idle_time
        self._idle: dict[Connection, None] = {}  # ordered: who fell idle last is the last
        self._addresses: list[tuple[Any, ...]] = []
        self._resolving: asyncio.Task[list[tuple[Any, ...]]] | None = None
        self._connecting = asyncio.Semaphore(_CONNECTING)
        self._slots = None if max is None else asyncio.Semaphore(max)
        self._coming = 0
        self.open: set[Connection] = set()
        self.outgoing = outgoing or Outgoing()

    @property
    def in_use(self) -> bool:
        """Whether a connection is open, or somebody is about to open one."""
        return bool(self.open) or self._coming > 0

    def post(self, request: Request, bounds: Bounds, sink: Sink | None = None) -> Coroutine[Any, Any, Answer]:
        """Send one request, all within `bounds`. Raises TimeoutError, ProtocolError, OSError.

        A kept-alive connection that turns out dead is replaced, once, by a new one.
        """
        end = asyncio.get_running_loop().time() + bounds.seconds
        if self._slots is None:
            return self._post(request, end, bounds, sink)
        return self._post_in_turn(self._slots, request, end, bounds, sink)

    async def _post_in_turn(
        self, slots: asyncio.Semaphore, request: Request, end: float, bounds: Bounds, sink: Sink | None
    ) -> Answer:
        self._coming += 1
        try:
            try:
                async with asyncio.timeout_at(end):
                    await slots.acquire()
            except TimeoutError:
                raise CrowdedError(
                    f"none of the {self._max} connections that may be open to it became free in {bounds.seconds:g} s"
                ) from None
            try:
                return await self._post(request, end, bounds, sink)
            finally:
                slots.release()
        finally:
            self._coming -= 1

    async def _post(self, request: Request, end: float, bounds: Bounds, sink: Sink | None) -> Answer:
        connection = self._pop_idle(end - bounds.seconds - self._idle_time)
        if connection is not None:
            try:
                return await connection.exchange(request, end, bounds, sink)
            except StaleConnectionError:
                pass
        self._coming += 1
        try:
            async with asyncio.timeout_at(end):
                connection = await self._connect()
        finally:
            self._coming -= 1
        return await connection.exchange(request, end, bounds, sink)

    def keep(self, connection: Connection) -> None:
        """Hold a connection for the next post, unless enough are held."""
        if self._keep is not None and len(self._idle) >= self._keep:
            connection.close()
        else:
            self._idle[connection] = None

    def forget(self, connection: Connection) -> None:
        """A connection has ended."""
        self.open.discard(connection)
        self._idle.pop(connection, None)

    def close_idle(self) -> None:
        """Close the connections that nobody has needed for `idle_time`."""
        oldest = asyncio.get_running_loop().time() - self._idle_time
        for connection in list(self._idle):
            if connection.idle_since >= oldest:
                break
            del self._idle[connection]
            connection.close()

    def _pop_idle(self, oldest: float) -> Connection | None:
        while self._idle:
            connection, _ = self._idle.popitem()
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
                        _, connection = await loop.create_connection(
                            made, address[0], address[1], ssl=self._tls, server_hostname=self._name
                        )
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
