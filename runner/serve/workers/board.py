"""`Board`: how full each worker is, in memory that all of them share, so that together they keep to the limits.

A row per worker, which that worker alone writes; a lock is held while a sum over rows decides. The kernel drops the
lock with its process, and whoever supervises clears the row of a worker that died.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_OPEN, _PLACES, _RUNNING, _HEAD, _SEEN = range(5)
_WIDTH = 8
_ASLEEP = 2_000_000_000
"""Nanoseconds without a sign of life after which nobody waits for a worker's turn any more."""


class Board:
    """`places` are rollouts that a worker holds, `running` those that play, `head` says since when its first waits.

    Times are nanoseconds of the monotonic clock, which is the same for all processes; 0 is none.
    """

    def __init__(self, path: Path, workers: int) -> None:
        self.workers = workers
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        size = workers * _WIDTH * 8
        if os.fstat(self._file).st_size < size:
            os.ftruncate(self._file, size)
        self._memory = mmap.mmap(self._file, size)
        self._cells = memoryview(self._memory).cast("Q")

    def close(self) -> None:
        """Let go of it. The file is its owner's to remove."""
        self._cells.release()
        self._memory.close()
        os.close(self._file)

    # What a worker says of itself

    def hold(self, worker: int, places: int) -> None:
        """So many rollouts it holds now."""
        self._cells[worker * _WIDTH + _PLACES] = places

    def open(self, worker: int) -> None:
        """From now on it answers its siblings."""
        self.beat(worker)
        self._cells[worker * _WIDTH + _OPEN] = 1

    def beat(self, worker: int) -> None:
        """It lives."""
        self._cells[worker * _WIDTH + _SEEN] = time.monotonic_ns()

    def take(self, worker: int, places: int, most: int) -> bool:
        """Hold one more than `places`, if all together hold fewer than `most`."""
        with self._locked():
            if sum(self._column(_PLACES)) >= most:
                return False
            self.hold(worker, places + 1)
            return True

    def begin(self, worker: int, most: int, since: int, then: int) -> bool:
        """Play the one that has waited since `since`, if fewer than `most` play and none elsewhere waits for longer.

        The next one after it waits since `then`. False: it waits on, and a sibling that ends one will say so.
        """
        with self._locked():
            earlier = sum(1 for each in self._waiting(worker) if self._cell(each, _HEAD) < since)
            if most - sum(self._column(_RUNNING)) <= earlier:
                self._cells[worker * _WIDTH + _HEAD] = since
                return False
            self._cells[worker * _WIDTH + _HEAD] = then
            self._cells[worker * _WIDTH + _RUNNING] += 1
            return True

    def overtake(self, worker: int) -> None:
        """Play one whatever the number that plays."""
        self._cells[worker * _WIDTH + _RUNNING] += 1

    def end(self, worker: int) -> None:
        """One plays no more."""
        self._cells[worker * _WIDTH + _RUNNING] -= 1

    def wait(self, worker: int, since: int) -> None:
        """Its first now waits since then; 0 when none does."""
        self._cells[worker * _WIDTH + _HEAD] = since

    # What is known of the others

    def next_to(self, worker: int, most: int) -> list[int]:
        """The siblings whose turn it is while fewer than `most` play, who has waited longest first."""
        with self._locked():
            free = most - sum(self._column(_RUNNING))
            waiting = sorted(self._waiting(worker), key=lambda each: self._cell(each, _HEAD))
            return waiting[: max(0, free)]

    def emptiest(self, worker: int, sent: Sequence[int]) -> int:
        """Who should take one more: this worker, unless another that answers holds clearly less.

        `sent` counts for each worker what is on its way there and on no row yet.
        """
        now = time.monotonic_ns()
        own = self._cell(worker, _PLACES)
        least, best = own - own // 8 - 1, worker
        for each in range(self.workers):
            held = self._cell(each, _PLACES) + sent[each]
            if each != worker and held < least and self._cell(each, _OPEN) and self._awake(each, now):
                least, best = held, each
        return best

    def answers(self, worker: int) -> bool:
        """Whether it is open."""
        return bool(self._cell(worker, _OPEN))

    def places(self, worker: int) -> int:
        """How many rollouts it holds."""
        return self._cell(worker, _PLACES)

    def totals(self) -> tuple[int, int]:
        """How many play, and how many are held, by all together."""
        return sum(self._column(_RUNNING)), sum(self._column(_PLACES))

    def bury(self, worker: int) -> None:
        """It died: it plays nothing and waits for nothing. Its places stay taken for the one that comes after it."""
        for cell in (_OPEN, _RUNNING, _HEAD):
            self._cells[worker * _WIDTH + cell] = 0

    def _waiting(self, but: int) -> list[int]:
        now = time.monotonic_ns()
        return [
            each for each in range(self.workers) if each != but and self._cell(each, _HEAD) and self._awake(each, now)
        ]

    def _awake(self, worker: int, now: int) -> bool:
        return now - self._cell(worker, _SEEN) < _ASLEEP

    def _column(self, cell: int) -> list[int]:
        return [self._cell(each, cell) for each in range(self.workers)]

    def _cell(self, worker: int, cell: int) -> int:
        return self._cells[worker * _WIDTH + cell]

    @contextmanager
    def _locked(self) -> Iterator[None]:
        fcntl.flock(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._file, fcntl.LOCK_UN)
