"""`Outgoing`: what is written in one turn of the event loop leaves together.

A write that wakes a sleeping peer costs the sender twice as much as one to a peer that is awake (12 against 5 us over
the loopback device). So a few are collected before the first of them goes, and the peer wakes once for all of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

_MOST = 16
"""Writes that are collected at most: a peer that has so many to read sleeps no more."""


class Outgoing:
    """Collects the writes of one event loop. In their order, however they leave."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[tuple[asyncio.Transport, Sequence[bytes]]] = []

    def write(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, parts: Sequence[bytes]) -> None:
        """Have `parts` written to `transport` by the end of this turn, unless it is closed by then."""
        self._waiting.append((transport, parts))
        if len(self._waiting) == 1:
            loop.call_soon(self.flush)
        elif len(self._waiting) >= _MOST:
            self.flush()

    def flush(self) -> None:
        """Write what was collected: before anything else is written to one of these transports, or one is closed."""
        waiting, self._waiting = self._waiting, []
        for transport, parts in waiting:
            if not transport.is_closing():
                transport.writelines(parts)
