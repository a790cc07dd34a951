"""A hand-written server for what no decent server would do, and a clock that only moves when told."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter, int], Awaitable[None]]


class RawServer:
    """Hands each connection to `talk(reader, writer, number of the connection from 0)`."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk
        self.connections = 0
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = self.connections
        self.connections += 1
        try:
            await self.talk(reader, writer, number)
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()

    @staticmethod
    async def request(reader: asyncio.StreamReader) -> dict[str, Any]:
        """The body of the next request."""
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
        body: dict[str, Any] = json.loads(await reader.readexactly(length))
        return body

    @staticmethod
    def ok(text: str = "fine", **more: Any) -> bytes:
        """A whole good answer."""
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return RawServer.http(200, {"id": "x", "choices": [choice], **more})

    @staticmethod
    def http(status: int, body: Any, headers: str = "") -> bytes:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return f"HTTP/1.1 {status} X\r\n{headers}content-length: {len(data)}\r\n\r\n".encode() + data


@pytest.fixture
def raw_server() -> Callable[[Talk], contextlib.AbstractAsyncContextManager[RawServer]]:
    @contextlib.asynccontextmanager
    async def start(talk: Talk) -> AsyncIterator[RawServer]:
        raw = RawServer(talk)
        server = await asyncio.start_server(raw.serve, "127.0.0.1", 0)
        raw.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        try:
            yield raw
        finally:
            server.close()
            await asyncio.sleep(0.01)  # lets the handlers see their clients go

    return start


class Alarm:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class VirtualClock:
    """`advance` moves the time and lets everything due run. `sleep` moves it by itself: nobody waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []
        self._due: list[tuple[float, int, Callable[[], None], Alarm]] = []

    def time(self) -> float:
        return 1_800_000_000.0 + self.now

    def monotonic(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await self.advance(seconds)

    def call_later(self, seconds: float, call: Callable[[], None]) -> Alarm:
        alarm = Alarm()
        heapq.heappush(self._due, (self.now + seconds, len(self._due), call, alarm))
        return alarm

    async def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while self._due and self._due[0][0] <= end:
            self.now, _, call, alarm = heapq.heappop(self._due)
            if not alarm.cancelled:
                call()
            await settle()
        self.now = end
        await settle()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()
