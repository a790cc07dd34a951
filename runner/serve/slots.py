"""`Slots`: how many rollouts play at once, who waits, and how full the house is.

A place is reserved before anything is awaited, so that a burst cannot overshoot between the question and the answer.
"""

from __future__ import annotations

import math
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")

_WINDOW = 64
"""How many of the last ends tell how soon the next place comes free."""
_UNKNOWN = 5
"""Seconds to come back in when nothing has ended yet."""
_LONGEST = 60


class Slots(Generic[T]):
    """At most `concurrent` items play, at most `queue` wait, first in first out.

    `begin` is called with an item when its turn has come; `leave` says that it plays no more.
    """

    def __init__(
        self, concurrent: int, queue: int, begin: Callable[[T], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.concurrent = concurrent
        self.queue = queue
        self._begin = begin
        self._clock = clock
        self._waiting: OrderedDict[str, T] = OrderedDict()
        self._ends: deque[float] = deque(maxlen=_WINDOW)
        self._turned_away: deque[float] = deque(maxlen=1024)
        self.reserved = 0
        self.running = 0

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        return len(self._waiting)

    def reserve(self) -> bool:
        """Keep a place for one that is being written down. False: there is none."""
        if self.reserved + self.running + len(self._waiting) >= self.concurrent + self.queue:
            self._turned_away.append(self._clock())
            return False
        self.reserved += 1
        return True

    def give_back(self) -> None:
        """A reserved place is not needed after all."""
        self.reserved -= 1

    def enter(self, name: str, item: T, *, reserved: bool = True) -> None:
        """Take the reserved place: play now, or wait. Without `reserved` there is room for it in any case."""
        if reserved:
            self.reserved -= 1
        if self.running < self.concurrent and not self._waiting:
            self._start(item)
        else:
            self._waiting[name] = item

    def leave(self) -> None:
        """One has ended: the next may begin."""
        self.running -= 1
        self._ends.append(self._clock())
        while self._waiting and self.running < self.concurrent:
            self._start(self._waiting.popitem(last=False)[1])

    def withdraw(self, names: Iterable[str]) -> list[T]:
        """Take items out of the queue: those that wait."""
        return [self._waiting.pop(name) for name in names if name in self._waiting]

    def hurry(self, due: Callable[[T], bool], most: int | None = None) -> int:
        """Begin those that wait and are due, whatever the number that plays: their time is over, they end at once.

        At most `most` of them; how many.
        """
        names = list(islice((name for name, item in self._waiting.items() if due(item)), most))
        for name in names:
            self._start(self._waiting.pop(name))
        return len(names)

    def retry_after(self) -> int:
        """Whole seconds until a place is likely to be free for who asks now.

        Measured: the time between the last ends, times those turned away since the last end, who ask again, too.
        """
        if len(self._ends) < 2:
            return _UNKNOWN
        now = self._clock()
        each = (now - self._ends[0]) / len(self._ends)
        ahead = sum(1 for when in self._turned_away if when >= self._ends[-1])
        return max(1, min(_LONGEST, math.ceil(each * max(1, ahead))))

    def _start(self, item: T) -> None:
        self.running += 1
        self._begin(item)
