"""`SharedSlots`: the slots of one worker, of which all workers together have only so many.

Who has waited longest plays next, whichever worker holds it; a worker that frees a slot pokes the one whose turn it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import islice
from typing import TypeVar

from runner.serve.slots import Slots
from runner.serve.workers.board import Board

T = TypeVar("T")


class SharedSlots(Slots[T]):
    """`concurrent` and `queue` are of all workers. `poke` tells a sibling that its turn has come."""

    def __init__(
        self, board: Board, worker: int, most: tuple[int, int], begin: Callable[[T], None], poke: Callable[[int], None]
    ) -> None:
        super().__init__(*most, begin)
        self._board = board
        self._worker = worker
        self._poke = poke
        self._since: dict[str, int] = {}
        # What a predecessor held is this worker's to recover: its places are nobody else's meanwhile.
        self._kept = board.places(worker)

    def opened(self) -> None:
        """All that a predecessor left is recovered."""
        self._kept = 0
        self._hold()

    def reserve(self) -> bool:
        """Keep a place for one that is being written down. False: there is none anywhere."""
        if not self._board.take(self._worker, self._held(), self.concurrent + self.queue):
            self._turned_away.append(time.monotonic())
            return False
        self.reserved += 1
        return True

    def give_back(self) -> None:
        """A reserved place is not needed after all."""
        super().give_back()
        self._hold()

    def enter(self, name: str, item: T, *, reserved: bool = True) -> None:
        """Take the reserved place: play now, or wait. Without `reserved` there is room for it in any case."""
        if reserved:
            self.reserved -= 1
        self._waiting[name] = item
        self._since[name] = time.monotonic_ns()
        self._hold()
        self.pump()

    def leave(self) -> None:
        """One has ended: the next may begin, here or elsewhere."""
        self.running -= 1
        self._ends.append(time.monotonic())
        self._board.end(self._worker)
        self._hold()
        self.pump()
        self._poke_others()

    def withdraw(self, names: Iterable[str]) -> list[T]:
        """Take items out of the queue: those that wait."""
        waited = [name for name in names if name in self._waiting]
        if not waited:
            return []
        for name in waited:
            del self._since[name]
        found = super().withdraw(waited)
        self._show()
        self.pump()
        self._poke_others()  # it may be theirs to begin what stood behind those that are gone
        return found

    def hurry(self, due: Callable[[T], bool], most: int | None = None) -> int:
        """Begin those that wait and are due, whatever the number that plays: their time is over, they end at once.

        At most `most` of them; how many.
        """
        names = list(islice((name for name, item in self._waiting.items() if due(item)), most))
        for name in names:
            self._board.overtake(self._worker)
            del self._since[name]
            self._start(self._waiting.pop(name))
        if names:
            self._show()
        return len(names)

    def pump(self) -> None:
        """Begin what may begin."""
        while self._waiting:
            name, *after = islice(self._since, 2)
            if not self._board.begin(
                self._worker, self.concurrent, self._since[name], self._since[after[0]] if after else 0
            ):
                return
            del self._since[name]
            self._start(self._waiting.pop(name))

    def _poke_others(self) -> None:
        for each in self._board.next_to(self._worker, self.concurrent):
            self._poke(each)

    def _show(self) -> None:
        self._board.wait(self._worker, next(iter(self._since.values()), 0))
        self._hold()

    def _held(self) -> int:
        return max(self._kept, self.reserved + self.running + len(self._waiting))

    def _hold(self) -> None:
        self._board.hold(self._worker, self._held())
