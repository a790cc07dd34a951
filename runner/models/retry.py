"""When to try again, and how long to wait first. Pure, but for `SystemClock`, the one place that asks the time.

Every try is bounded by the number of attempts; every wait by `max_wait`. Cancelling the caller ends a wait at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Protocol

_FIRST_WAIT = 0.5

RETRIED_STATUSES = frozenset({408, 409, 429})


@dataclass(frozen=True, slots=True)
class Retries:
    """At most `attempts` tries in all, with at most `max_wait` seconds between two."""

    attempts: int = 5
    max_wait: float = 60.0


class Timer(Protocol):
    """Something scheduled that can be called off."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """The time, as models and limiters see it."""

    def time(self) -> float:
        """Unix time in seconds."""
        ...

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        ...

    async def sleep(self, seconds: float) -> None: ...

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer: ...


class SystemClock:
    """The real time."""

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        import asyncio

        return asyncio.get_running_loop().call_later(seconds, call)


def worth_retrying(status: int) -> bool:
    """Whether an HTTP status is one that passes: 408, 409, 429, 5xx."""
    return status in RETRIED_STATUSES or status >= 500


def delay(attempt: int, retry_after: float | None, rng: Random, max_wait: float) -> float:
    """Seconds to wait after failed try number `attempt` (from 1): exponential with full jitter.

    What the endpoint asks for is honoured up to `max_wait`, with a tenth of jitter on top so that not all come
    back in the same instant.
    """
    if retry_after is not None:
        return min(max_wait, retry_after * (1.0 + 0.1 * rng.random()))
    ceiling = min(max_wait, _FIRST_WAIT * 2.0 ** min(attempt - 1, 30))
    return rng.uniform(0.0, ceiling)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that `retry-after-ms` or `Retry-After` (seconds or an HTTP date) asks for; `now` is Unix time."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000.0
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    seconds = _number(text)
    return seconds if seconds is not None else _until(text, now)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.0 <= value < float("inf") else None


def _until(text: str, now: float) -> float | None:
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - now)
    except (ValueError, OverflowError):
        return None
