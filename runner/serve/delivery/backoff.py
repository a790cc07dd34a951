"""How long to wait before a callback is posted again. Pure: the time and the dice are handed in.

Waits are drawn from the whole range up to an exponentially growing bound ("full jitter"), so that callbacks that
failed together do not come back together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from runner.models.retry import ceiling, delay, retry_after

_SHORTEST = 0.05
"""Seconds: a controller that says "retry after 0" is still given room to breathe."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits in seconds: up to `base` after the first failure, up to twice as much after each further one."""

    base: float = 0.5
    longest: float = 30.0

    def wait(self, failures: int, rng: Random) -> float:
        """Seconds to wait after the `failures`-th failure in a row (from 1)."""
        return delay(failures, None, rng, self.longest, self.base)

    def pause(self, failures: int, rng: Random) -> float:
        """The same for a whole origin, at least half of the bound: one probe at a time needs no spreading out."""
        return (0.5 + 0.5 * rng.random()) * ceiling(failures, self.longest, self.base)

    def asked(self, headers: Mapping[str, str], now: float, rng: Random) -> float | None:
        """What `Retry-After` asks for, in seconds or as an HTTP date, within our bounds; None if it asks nothing.

        `now` is Unix time. A negative or unreadable value counts as nothing.
        """
        if "retry-after" not in headers and "retry-after-ms" not in headers:
            return None
        seconds = retry_after(headers, now)
        if seconds is None:
            return None
        return max(_SHORTEST, delay(1, seconds, rng, self.longest))
