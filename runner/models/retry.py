"""When to try again, and how long to wait first. Pure, but for `SystemClock`, the one place that asks the time.

Every try is bounded by the number of attempts; every wait by `max_wait`. Cancelling the caller ends a wait at once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Protocol

_MILLISECONDS = 1e12
"""A Unix time beyond this counts milliseconds."""
_UNIX_TIME = 1e9
_WAIT = re.compile(
    r"(?:try again|retry)(?: your request)? (?:in|after):? ((?:\d+(?:\.\d+)?\s*[a-z]+[ ,]*)+)"
    r'|"retryDelay": *"([\d.]+s)"',
    re.IGNORECASE,
)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|hours?|h|minutes?|min|m|seconds?|sec|s)(?![a-z])", re.IGNORECASE)
_UNITS = {"ms": 0.001, "h": 3600.0, "hour": 3600.0, "m": 60.0, "min": 60.0, "minute": 60.0}

RETRIED_STATUSES = frozenset({408, 409, 429})


@dataclass(frozen=True, slots=True)
class Retries:
    """At most `attempts` tries in all, with at most `max_wait` seconds between two.

    `base_wait` is the longest wait after the first failure; it doubles with each one more.
    """

    attempts: int = 5
    max_wait: float = 60.0
    base_wait: float = 0.5


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

    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)

    async def sleep(self, seconds: float) -> None:
        import asyncio

        await asyncio.sleep(seconds)

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        import asyncio

        return asyncio.get_running_loop().call_later(seconds, call)


def worth_retrying(status: int) -> bool:
    """Whether an HTTP status is one that passes: 408, 409, 429, 5xx."""
    return status in RETRIED_STATUSES or status >= 500


def delay(attempt: int, retry_after: float | None, rng: Random, max_wait: float, base_wait: float = 0.5) -> float:
    """Seconds to wait after failed try number `attempt` (from 1): exponential with full jitter.

    What the endpoint asks for is honoured up to `max_wait`, with a tenth of jitter on top so that not all come
    back in the same instant.
    """
    if retry_after is not None:
        return min(max_wait, retry_after * (1.0 + 0.1 * rng.random()))
    return rng.uniform(0.0, ceiling(attempt, max_wait, base_wait))


def ceiling(attempt: int, max_wait: float, base_wait: float) -> float:
    """The longest wait after failed try number `attempt` (from 1), in seconds: twice as long after each one more."""
    return min(max_wait, base_wait * 2.0 ** min(attempt - 1, 30))


def retry_after(headers: Mapping[str, str], now: float, body: bytes = b"") -> float | None:
    """Seconds that a refusal asks us to wait; `now` is Unix time.

    By `retry-after-ms` or `Retry-After` (seconds or an HTTP date), else by the words of its body ("try again in
    1m47.5s"), else by when a limit that is used up starts anew (`x-ratelimit-reset-…`).
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000.0
    text = headers.get("retry-after", "").strip()
    if text:
        seconds = _number(text)
        return seconds if seconds is not None else _until(text, now)
    in_words = _WAIT.search(body[:8192].decode("utf-8", "replace"))
    if in_words is not None:
        return _duration(in_words[1] or in_words[2])
    waits = [_reset(headers, kind, now) for kind in ("", "-requests", "-tokens")]
    return max((wait for wait in waits if wait is not None), default=None)


def _reset(headers: Mapping[str, str], kind: str, now: float) -> float | None:
    """Seconds until a limit of which nothing remains starts anew: a number, "6m0s", or a Unix time."""
    if _number(headers.get("x-ratelimit-remaining" + kind, "")) != 0.0:
        return None
    text = headers.get("x-ratelimit-reset" + kind, "").strip()
    value = _number(text)
    if value is None:
        return _duration(text)
    if value > _MILLISECONDS:
        value /= 1000.0
    return max(0.0, value - now) if value > _UNIX_TIME else value


def _duration(text: str) -> float | None:
    """Seconds in "1h2m3.5s", "250ms", "17 seconds" or "1 minute"."""
    found = _PART.findall(text)
    return sum(float(number) * _UNITS.get(_singular(unit), 1.0) for number, unit in found) if found else None


def _singular(unit: str) -> str:
    unit = unit.lower()
    return unit if len(unit) < 3 else unit.removesuffix("s")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0.0 <= value < float("inf") else None


def _until(text: str, now: float) -> float | None:
    from datetime import UTC
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(text)
        if date.tzinfo is None:  # HTTP dates are of GMT, also where the server forgot to say so
            date = date.replace(tzinfo=UTC)
        return max(0.0, date.timestamp() - now)
    except (ValueError, OverflowError):
        return None
