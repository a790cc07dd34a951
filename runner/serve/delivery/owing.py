"""What is owed, in memory: one `Lane` per rollout, its callbacks in their order, and as few bodies as will do.

Bodies live in the outbox. Those of new callbacks are kept while they fit `Bodies.limit`, since most are posted at
once; of the others only ids are held, and their bodies are read back, many in one go, when their turn comes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias
from urllib.parse import urlsplit

from runner.store.outbox import Owed

Reader: TypeAlias = Callable[[Sequence[tuple[str, str]]], Awaitable[Sequence[Owed | None]]]
"""Reads what is owed under each (attempt_id, channel); None where nothing is any more."""

_PORTS = {"http": 80, "https": 443}


@dataclass(slots=True, eq=False)
class Owing:
    """One callback that is owed. `owed` is None while its body is only on disk."""

    channel: str
    origin: str
    owed: Owed | None
    first_at: float
    tries: int
    gives_up_at: float
    failures: int = 0
    absent: tuple[int, float] | None = None
    """What the origin had acknowledged, and the time, at the first of the last posts that all met a proxy's 404."""


@dataclass(slots=True, eq=False)
class Lane:
    """The callbacks of one rollout that nobody has acknowledged yet, the next one first."""

    attempt_id: str
    rollout_id: str
    since: float
    owing: deque[Owing] = field(default_factory=deque)
    asked: bool = False
    """Whether it waits because the controller asked it to."""
    writing: bool = False
    """Whether what came of its post is just being written down."""


def origin_of(url: str) -> str:
    """Scheme, host and port of a callback URL, without a user's name; "" if nothing can be posted to it."""
    if not url.isascii() or not url.isprintable() or " " in url:
        return ""
    end = url.find("/", 8)
    return _origin(url if end < 0 else url[:end])


@lru_cache(1024)
def _origin(start: str) -> str:
    try:
        parts = urlsplit(start)
        port = parts.port or _PORTS[parts.scheme]
    except (ValueError, KeyError):
        return ""
    host = parts.hostname or ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}:{port}" if host else ""


class Bodies:
    """Which bodies are in memory. `read` is for callbacks whose body is not."""

    def __init__(self, read: Reader, limit: int) -> None:
        self._read = read
        self._limit = limit
        self._wanted: list[tuple[tuple[str, str], asyncio.Future[Owed | None]]] = []
        self._reading: asyncio.Task[None] | None = None
        self.held = 0

    def keep(self, owed: Owed) -> Owed | None:
        """`owed` if there is room for it, else None."""
        size = len(owed.body)
        if self.held + size > self._limit:
            return None
        self.held += size
        return owed

    def drop(self, owing: Owing) -> None:
        """Hold the body of a callback no longer: it is delivered, or its turn comes again later."""
        if owing.owed is not None:
            self.held -= len(owing.owed.body)
            owing.owed = None

    def spare(self, owing: Owing) -> None:
        """Hold the body of a callback that must wait only while there is room in plenty."""
        if self.held * 2 > self._limit:
            self.drop(owing)

    async def fetch(self, attempt_id: str, channel: str) -> Owed | None:
        """Read a body back. All that are asked for while one reading is under way go into the next."""
        future: asyncio.Future[Owed | None] = asyncio.get_running_loop().create_future()
        self._wanted.append(((attempt_id, channel), future))
        if self._reading is None:
            self._reading = asyncio.create_task(self._read_wanted())
        return await future

    async def _read_wanted(self) -> None:
        await asyncio.sleep(0)  # whoever is about to ask, may
        while self._wanted:
            page, self._wanted = self._wanted, []
            try:
                found = await self._read([key for key, _ in page])
            except Exception as error:
                for _, future in page:
                    if not future.done():
                        future.set_exception(error)
                continue
            for (_, future), owed in zip(page, found, strict=True):
                if not future.done():
                    future.set_result(owed)
        self._reading = None

    async def aclose(self) -> None:
        """Wait for a reading under way."""
        if self._reading is not None:
            await asyncio.wait([self._reading])
