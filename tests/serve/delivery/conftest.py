"""A controller that answers callbacks as a script says, and a server's delivery with its real outbox and sockets."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pytest

from runner.models.connections import Connections
from runner.models.double_http import Connection, Request, response
from runner.serve.delivery.deliveries import CallbackPolicy, Deliveries, Posted
from runner.store.outbox import Accepted, Delivery, Outbox, Owed, Verdict
from tests.waiting import until

QUICK = CallbackPolicy(timeout=3.0, base_wait=0.01, max_wait=0.05, absence=0.3, ack_wait=0.1)


@dataclass
class Seen:
    """A callback as the controller got it; `number` is how often it got one at that path, from 1."""

    path: str
    body: bytes
    headers: dict[str, str]
    number: int
    at: float

    @property
    def channel(self) -> str:
        return self.path.rsplit("/", 1)[1]


Script = Callable[[Seen], Any]
"""Gives a status; or (status, headers, body); or bytes to send raw; or "hang", "reset", "close", "half", "drop-ack"."""


@dataclass
class Controller:
    """`acked` lists the payloads it acknowledged, by path, as far as it knows."""

    script: Script = lambda seen: 200
    port: int = 0
    seen: list[Seen] = field(default_factory=list)
    acked: dict[str, list[bytes]] = field(default_factory=dict)
    sockets: int = 0
    most: int = 0
    _tries: Counter[str] = field(default_factory=Counter)
    _open: set[Connection] = field(default_factory=set)
    _server: Any = None
    _busy: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def paths(self) -> list[str]:
        return [seen.path for seen in self.seen]

    async def start(self) -> Controller:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._made, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def _made(self) -> Connection:
        self.sockets += 1
        return Connection(self._handle, self._open, self._lost)

    def _lost(self, connection: Connection) -> None:
        self._busy -= 1

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for connection in list(self._open):
                connection.abort()
            await self._server.wait_closed()
            self._server = None

    def _handle(self, connection: Connection, request: Request) -> None:
        self._busy += 1
        self.most = max(self.most, self._busy)
        self._tries[request.path] += 1
        seen = Seen(request.path, request.body, request.headers, self._tries[request.path], time.monotonic())
        self.seen.append(seen)
        reply = self.script(seen)
        if isinstance(reply, float):  # after so many seconds
            asyncio.get_running_loop().call_later(reply, self._answer, connection, seen, 200)
        else:
            self._answer(connection, seen, reply)

    def _answer(self, connection: Connection, seen: Seen, reply: Any) -> None:
        if reply == "hang":
            return
        self._busy -= 1
        if isinstance(reply, bytes):
            connection.finish(reply)
        elif reply == "drop-ack":  # it takes the callback, and its answer is lost
            self.acked.setdefault(seen.path, []).append(seen.body)
            connection.drop()
            connection.reset()
        elif reply in ("reset", "close", "half"):
            if reply == "half":
                connection.write(b"HTTP/1.1 200 OK\r\ncontent-le")
            connection.drop()
            connection.reset() if reply == "reset" else connection.close()
        else:
            status, headers, body = reply if isinstance(reply, tuple) else (reply, (), b"{}")
            if 200 <= status < 300:
                self.acked.setdefault(seen.path, []).append(seen.body)
            connection.finish(response(status, body, headers=tuple(headers)))


@dataclass
class Side:
    """The server's side."""

    outbox: Outbox
    connections: Connections
    deliveries: Deliveries
    posts: list[Posted]

    async def finish(
        self, attempt_id: str, base: str, channels: Sequence[str] = ("completion", "grader"), key: str | None = "secret"
    ) -> None:
        """Have a rollout end: its verdict and what it owes are stored, and handed over."""
        await self.outbox.accept(Accepted(attempt_id, f"wire-{attempt_id}", "test", (), b"{}", time.time()))
        owed = [
            Owed(channel, f"{base}/{attempt_id}/{channel}", f'{{"{channel}":"{attempt_id}"}}'.encode(), key)
            for channel in channels
        ]
        await self.outbox.settle(attempt_id, Verdict("scored", "answered", 1.0, ""), owed)
        now = time.time()
        self.deliveries.owe(
            [
                Delivery(attempt_id, f"wire-{attempt_id}", one.channel, place, one, 0, now, now, "")
                for place, one in enumerate(owed)
            ]
        )

    async def done(self, seconds: float = 5.0) -> None:
        """Until nothing is owed any more, and that is written down."""
        await until(lambda: not (self.deliveries.backlog().pending or self.deliveries.backlog().posting), seconds)
        assert await self.deliveries.settle(seconds) == 0

    def told(self, attempt_id: str, channel: str) -> list[str]:
        return [each.result for each in self.posts if (each.attempt_id, each.channel) == (attempt_id, channel)]


@asynccontextmanager
async def opened(path: Path, policy: CallbackPolicy = QUICK, **options: Any) -> AsyncIterator[Side]:
    outbox = Outbox.open(path / "rollouts.db")
    connections = Connections()
    posts: list[Posted] = []
    deliveries = Deliveries(outbox, connections, policy, rng=Random(7), heard=posts.append, **options)
    try:
        yield Side(outbox, connections, deliveries, posts)
    finally:
        await deliveries.aclose()
        await connections.aclose()
        await outbox.aclose()


@dataclass
class Desk:
    """What a test works with."""

    folder: Path
    quick: CallbackPolicy = QUICK
    controllers: list[Controller] = field(default_factory=list)

    def side(self, policy: CallbackPolicy = QUICK, **options: Any) -> Any:
        """Opens the outbox in this test's folder, and delivers from it."""
        return opened(self.folder, policy, **options)

    async def controller(self, script: Script = lambda seen: 200) -> Controller:
        controller = await Controller(script).start()
        self.controllers.append(controller)
        return controller

    async def until(self, true: Callable[[], bool], seconds: float = 5.0) -> None:
        await until(true, seconds)

    def run(self, test: Callable[[], Awaitable[None]]) -> None:
        async def whole() -> None:
            try:
                await test()
            finally:
                for controller in self.controllers:
                    await controller.stop()

        asyncio.run(whole())


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)
