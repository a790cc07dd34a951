"""A token bucket: so much per minute, spread evenly, with one second's worth of burst."""

from __future__ import annotations


class Bucket:
    """`per_minute` units flow in evenly. Taking may leave a debt, which later callers wait off.

    A request larger than the bucket is served when the bucket is full: it must not wait for ever.
    """

    def __init__(self, per_minute: float, now: float) -> None:
        self._rate = per_minute / 60.0
        self._capacity = max(1.0, self._rate)
        self._level = self._capacity
        self._at = now

    def wait(self, amount: float, now: float) -> float:
        """Seconds until `amount` may be taken; 0 if it may now."""
        self._level = min(self._capacity, self._level + (now - self._at) * self._rate)
        self._at = now
        missing = min(amount, self._capacity) - self._level
        # A rounding error must not make a waiter wake up a nanosecond early, again and again.
        return missing / self._rate if missing > 1e-9 * self._capacity else 0.0

    def take(self, amount: float) -> None:
        """Take `amount`; a negative one gives back."""
        self._level = min(self._capacity, self._level - amount)
