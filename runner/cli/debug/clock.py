"""A clock that stands still while a person thinks, and the event loop that runs by it.

Every deadline of a rollout is a timer of the event loop, so stopping the loop's clock stops them all: the limits of
the file are for the agent, not for whoever looks on.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager

from runner.runtime.budget import Clock


class PausingClock:
    """Seconds, counted on from `clock`, without those spent inside `stopped()`."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self._clock = clock
        self._away = 0.0
        self._since: float | None = None

    def __call__(self) -> float:
        return (self._clock() if self._since is None else self._since) - self._away

    @contextmanager
    def stopped(self) -> Iterator[None]:
        """Nothing that happens inside takes any time."""
        self._since = self._clock()
        try:
            yield
        finally:
            self._away += self._clock() - self._since
            self._since = None


class PausingLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers run by `clock`."""

    def __init__(self, clock: Clock) -> None:
        self._pausing = clock
        super().__init__()

    def time(self) -> float:
        return self._pausing()
