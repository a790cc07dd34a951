"""`serve`: hypercorn, with a short way for plain requests.

A connection begins on the short way (`short_way.py`). With the first request that comes in pieces it goes on with
streams, and with the first that is anything but plain it becomes hypercorn's own, for good: HTTP/2, upgrades, chunked
and malformed requests, heads that come in pieces. With TLS it is from the start. With settings that only hypercorn's
own server obeys, that one serves, and guards no connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from hypercorn.app_wrappers import ASGIWrapper
from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.asyncio.tcp_server import TCPServer
from hypercorn.asyncio.worker_context import WorkerContext
from hypercorn.config import Config

from runner.serve.http.accepting import Acceptor
from runner.serve.http.app import App
from runner.serve.http.plain import MAX_RECV, Exchange, head_of, read_plain, scope_of
from runner.serve.http.short_way import ShortWay, Ways

_CANCEL_WAIT = 1.0
"""Seconds that connections get to end once their grace is over and they are cut off."""
_LOOK = 5.0
"""Seconds between two looks at whether the peer of a connection that is hypercorn's own is still there."""

log = logging.getLogger(__name__)


async def serve(app: App, config: Config, shutdown_trigger: Callable[[], Awaitable[Any]]) -> None:
    """Answer on the config's sockets until the trigger returns; then give connections the config's grace to end."""
    if _needs_hypercorn(config):
        await hypercorn_serve(app, config, shutdown_trigger=shutdown_trigger, mode="asgi")  # type: ignore[arg-type]
        return
    connections = _Connections(app, config)
    sockets = config.create_sockets()
    acceptors = [Acceptor(sock, connections.begin, config.backlog) for sock in sockets.insecure_sockets]
    if context := config.create_ssl_context():
        secure = context, config.ssl_handshake_timeout
        acceptors += [
            Acceptor(sock, connections.begin_securely, config.backlog, secure) for sock in sockets.secure_sockets
        ]
    try:
        await shutdown_trigger()
    finally:
        for acceptor in acceptors:
            acceptor.close()
        await connections.end(config.graceful_timeout)


def _needs_hypercorn(config: Config) -> bool:
    """Whether a setting concerns every request, and only hypercorn's own way heeds it."""
    switches = config.include_date_header, config.h11_pass_raw_headers
    return any((config.accesslog, config.statsd_host, config.server_names, config.quic_bind, *switches))


class _Connections:
    """Every open connection of this process."""

    def __init__(self, app: App, config: Config) -> None:
        self._app = app
        self._config = config
        self._context = WorkerContext(None)
        self._added = config.response_headers("h11")
        self._patience = min(config.keep_alive_timeout, config.read_timeout or config.keep_alive_timeout)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._idle: set[asyncio.StreamWriter] = set()
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._ways = Ways(
            app,
            self._added,
            config.root_path,
            self._patience,
            config.keep_alive_max_requests,
            config.h11_max_incomplete_size,
            self._streams,
            self._changed.set,
        )

    def begin(self) -> asyncio.Protocol:
        """What hears a new connection."""
        return ShortWay(self._ways, self._loop)

    def begin_securely(self) -> asyncio.Protocol:
        """What hears a new connection over TLS, once hands are shaken."""
        reader = asyncio.StreamReader(loop=self._loop)
        return asyncio.StreamReaderProtocol(reader, self._converse_securely, loop=self._loop)

    def _streams(self, left: int) -> asyncio.Protocol:
        """What hears a connection from now on, which may carry `left` more requests."""
        reader = asyncio.StreamReader(loop=self._loop)
        return asyncio.StreamReaderProtocol(reader, partial(self._converse, left), loop=self._loop)

    async def _converse(self, left: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from a request that did not come in one piece to its end."""
        with self._counted():
            try:
                unread = await self._plain_ones(left, reader, writer)
            except OSError:
                unread = b""
            except BaseException:
                writer.transport.abort()
                raise
            if unread:
                await self._long_way(_Resumed(unread, reader, self._config.h11_max_incomplete_size + 1), writer)
            else:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()

    async def _converse_securely(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection over TLS, once hands are shaken."""
        with self._counted():
            await self._long_way(reader, writer)

    async def _long_way(self, reader: Any, writer: asyncio.StreamWriter) -> None:
        """Leave a connection to hypercorn for good."""
        wrapped, loop = ASGIWrapper(self._app), asyncio.get_running_loop()  # type: ignore[arg-type]
        talk = TCPServer(wrapped, loop, self._config, self._context, {}, reader, writer)
        await _while_connected(loop.create_task(talk.run()), writer)

    async def end(self, seconds: float) -> None:
        """Close what is idle, and the rest as soon as it is answered; cut off what is not so after `seconds`."""
        await self._context.terminated.set()
        self._ways.ending = True
        for writer in self._idle:
            writer.close()
        for short in list(self._ways.open):
            short.hush()
        for patience in (seconds, _CANCEL_WAIT):
            await self._gone(patience)
            for task in self._tasks:
                task.cancel()
            for short in list(self._ways.open):
                short.cut()

    async def _gone(self, seconds: float) -> None:
        """Wait until none is left, at most so long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._tasks or self._ways.open:
                    self._changed.clear()
                    await self._changed.wait()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            yield
        finally:
            self._tasks.discard(task)
            self._changed.set()

    async def _plain_ones(self, left: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """Answer plain requests. What was read of the first that is not plain; b"" when the connection is over."""
        connection = {
            "asgi": {"spec_version": "2.1", "version": "3.0"},
            "scheme": "http",
            "root_path": self._config.root_path,
            "client": writer.get_extra_info("peername"),
            "server": writer.get_extra_info("sockname"),
        }
        unread = b""
        for _ in range(left):
            data = unread or await self._next(reader, writer)
            plain = read_plain(data)
            if plain is None or plain.end > self._config.h11_max_incomplete_size:
                return data
            scope = scope_of(plain, connection)
            end = plain.end + plain.length
            if len(data) >= end:  # the usual case: no messages, and head and body leave together
                status, headers, body = await self._app.reply(scope, data[plain.end : end])
                head, last = head_of(status, (*headers, *self._added))
                writer.write(head + body)
                await writer.drain()
                unread = data[end:]
            else:
                exchange = Exchange(plain, data, reader, writer, self._added)
                await self._app(scope, exchange.receive, exchange.send)
                last, unread = exchange.last, exchange.rest
            if last or self._context.terminated.is_set():
                return b""
        return b""

    async def _next(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        """What comes next, within the time that a connection may be idle; b"" if nothing does."""
        if self._context.terminated.is_set():
            return b""
        timer = asyncio.get_running_loop().call_later(self._patience, writer.close)
        self._idle.add(writer)
        try:
            return await reader.read(MAX_RECV)
        finally:
            self._idle.discard(writer)
            timer.cancel()


async def _while_connected(talk: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
    """Wait for hypercorn's part of a connection, but not for ever once the connection is closed.

    Over HTTP/2 hypercorn hands an error answer to a task that ends with the connection, and waits for it in the place
    where it would learn of the end: the connection would be held for as long as the process lives.
    """
    closed = False
    try:
        while not talk.done() and not closed:
            closed = writer.is_closing()
            await asyncio.wait({talk}, timeout=_LOOK)
    finally:
        talk.cancel()
        await asyncio.wait({talk}, timeout=_CANCEL_WAIT)
    if talk.done() and not talk.cancelled():
        talk.result()


class _Resumed:
    """A reader that gives once more what was read from it already: as much of an `asyncio.StreamReader` as is used.

    It gives `most` bytes of that at once: h11 takes a head of any length if it comes whole.
    """

    def __init__(self, unread: bytes, reader: asyncio.StreamReader, most: int) -> None:
        self._unread = unread
        self._reader = reader
        self._most = most

    def at_eof(self) -> bool:
        return not self._unread and self._reader.at_eof()

    async def read(self, size: int) -> bytes:
        unread, self._unread = self._unread[: self._most], self._unread[self._most :]
        return unread or await self._reader.read(size)
