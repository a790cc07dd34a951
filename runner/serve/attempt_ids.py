"""`AttemptIds`: what our attempts are called."""

from __future__ import annotations

from collections.abc import Iterator
from os import urandom
from time import time_ns

_AT_ONCE = 256
"""Asking the system for chance lets go of the interpreter lock, and to get it back may take 20 us: not for each id."""
_BYTES = 10


class AttemptIds:
    """Makes ids that nobody can guess: 32 hex digits, the first 12 of them the time in milliseconds.

    Ids that are made one after the other lie side by side in an index, so that a commit writes few pages.
    """

    def __init__(self) -> None:
        self._chance = _chance()

    def __call__(self) -> str:
        return f"{time_ns() // 1_000_000:012x}{next(self._chance)}"


def _chance() -> Iterator[str]:
    while True:
        drawn = urandom(_BYTES * _AT_ONCE).hex()
        yield from (drawn[place : place + 2 * _BYTES] for place in range(0, len(drawn), 2 * _BYTES))
