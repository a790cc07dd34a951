"""`LoopLag`: how late the event loop runs what is due, which is what a blocking call costs everybody else."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

KEPT = 6000
"""Samples that `p99` looks at: the last ten minutes at ten a second."""


class LoopLag:
    """Samples the lag of the running loop, in seconds, and tells each to `heard`."""

    def __init__(self, heard: Callable[[float], None] | None = None) -> None:
        self._heard = heard
        self._recent: deque[float] = deque(maxlen=KEPT)

    async def watch(self, interval: float = 0.1) -> None:
        """Sample every `interval` seconds until cancelled. Costs some 20 µs a sample."""
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + interval
            await asyncio.sleep(interval)
            self.sample(max(0.0, loop.time() - due))

    def sample(self, seconds: float) -> None:
        self._recent.append(seconds)
        if self._heard is not None:
            self._heard(seconds)

    @property
    def p99(self) -> float:
        """The lag, in seconds, that 99 of 100 recent samples stay within; 0 before the first."""
        if not self._recent:
            return 0.0
        ranked = sorted(self._recent)
        return ranked[min(len(ranked) - 1, -(-len(ranked) * 99 // 100) - 1)]
