"""Ten thousand malformed, oversized, slow and half-closed requests over raw sockets, between good ones.

Nobody is answered 500, nothing is logged with a traceback, every good rollout gets its verdict, health stays quick,
and afterwards the process holds no more files, tasks and threads, and hardly more memory, than before.
"""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

ROUND = 5000
AT_ONCE = 200
GOOD = 100
"""Good starts in each round, of each generation."""


@pytest.fixture(scope="module")
def served(serve: Callable[..., Any], controller: Any) -> Any:
    return serve("--set", f'serve.allow_callbacks=["{controller.url}/*"]', "--log", "events")


class Crowd:
    """The clients of one round."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.statuses: Counter[int] = Counter()
        self.faults: list[tuple[str, bytes]] = []
        self.unanswered: list[str] = []
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._held: list[asyncio.StreamWriter] = []

    async def attack(self, attack: Any) -> None:
        async with self._gate:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            try:
                answer = await self._through(attack, reader, writer)
            except ConnectionError:
                answer = b""
            finally:
                if attack.end == "hold":
                    self._held.append(writer)
                else:
                    writer.close()
        for status in (int(each[:3]) for each in answer.split(b"HTTP/1.1 ")[1:]):
            self.statuses[status] += 1
            if status == 500:
                self.faults.append((attack.name, answer[:500]))

    async def _through(self, attack: Any, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        for place, piece in enumerate(attack.pieces):
            if place:
                await asyncio.sleep(0.005)
            writer.write(piece)
        if attack.end == "reset":
            raw = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if attack.end in ("reset", "close", "hold"):
            return b""
        await writer.drain()
        if attack.end == "half":
            writer.write_eof()
        try:
            return await asyncio.wait_for(reader.read(-1), 15)
        except TimeoutError:
            self.unanswered.append(attack.name)
            return b""

    async def leave(self) -> None:
        """The connections that are held see the end of the server's patience, then go."""
        for writer in self._held:
            writer.close()
        self._held.clear()


async def post(port: int, path: str, body: dict[str, Any], key: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    raw = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\nconnection: close\r\n"
    writer.write(f"{head}content-type: application/json\r\ncontent-length: {len(raw)}\r\n\r\n".encode() + raw)
    answer = await reader.read(-1)
    writer.close()
    return int(answer.split()[1])


async def health(port: int, slow: list[float]) -> None:
    while True:
        began = time.monotonic()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        answer = await reader.read(-1)
        writer.close()
        assert answer.startswith(b"HTTP/1.1 200")
        slow.append(time.monotonic() - began)
        await asyncio.sleep(0.05)


def run_round(served: Any, controller: Any, attacks: Any, number: int, size: int = ROUND) -> tuple[Crowd, list[float]]:
    """One round of attacks between good starts. Asserts that the good ones were accepted."""
    bad = [controller.start(f"bad-{number}", generation) for generation in (1, 2, 3)]
    storm = attacks.everything(served.KEY, bad, size, seed=number)
    if size == ROUND:  # of each kind enough
        assert sum(each.end == "half" for each in storm) > size / 5
        assert sum(len(each.pieces) > 1 or each.end == "hold" for each in storm) > size / 10
        assert sum(sum(map(len, each.pieces)) > 48 * 1024 for each in storm) > size / 10
    waits: list[float] = []

    async def whole() -> Crowd:
        crowd = Crowd(served.port)
        watch = asyncio.ensure_future(health(served.port, waits))
        good = [controller.start(f"good-{number}-{each}-{generation}", generation)
                for each in range(GOOD) for generation in (1, 2, 3)]  # fmt: skip

        async def kindly() -> list[int]:
            accepted = []
            for path, body in good:
                accepted.append(await post(served.port, path, body, served.KEY))
                await asyncio.sleep(0.01)
            return accepted

        kind = asyncio.ensure_future(kindly())
        await asyncio.gather(*map(crowd.attack, storm))
        assert set(await kind) == {202}
        watch.cancel()
        await crowd.leave()
        return crowd

    return asyncio.run(whole()), waits


def test_ten_thousand_hostile_requests_and_the_good_ones_between(served: Any, controller: Any, attacks: Any) -> None:
    run_round(served, controller, attacks, 0, 1500)  # what is opened and imported once is no leak
    served.quiet()
    files, tasks, threads, memory = served.steady(), served.value("event_loop_tasks"), served.threads(), served.rss()
    waits: list[float] = []
    for number in (1, 2):
        crowd, slow = run_round(served, controller, attacks, number)
        assert not crowd.faults, crowd.faults[:5]
        assert not crowd.unanswered, crowd.unanswered[:5]
        assert sum(crowd.statuses.values()) > ROUND / 2 and not {500, 502, 503} & set(crowd.statuses), crowd.statuses
        assert {400, 401, 404, 405, 408, 413, 422, 431} <= set(crowd.statuses), crowd.statuses
        waits += slow
        served.quiet()
        for each in range(GOOD):
            for generation in (1, 2, 3):
                verdicts = controller.verdicts[f"good-{number}-{each}-{generation}"]
                assert len(verdicts) == 1 and verdicts[0]["status"] in ("success", "COMPLETED"), verdicts
    served.unharmed()
    assert sorted(waits)[len(waits) * 99 // 100] < 1.0, sorted(waits)[-5:]
    assert served.settles(files) <= files
    assert served.threads() <= threads and served.value("event_loop_tasks") <= tasks
    assert served.value("rollouts_active") == served.value("queue_depth") == served.value("slots_in_use") == 0
    assert served.rss() - memory < 40, (memory, served.rss())
