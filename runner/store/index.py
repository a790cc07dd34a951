"""`Index`: what a resumed run must know of every record of a journal, without holding the records."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.records.rollout import STATUSES, Status
from runner.store.journal_reading import read


@dataclass(frozen=True, slots=True)
class Entry:
    """What a resumed run must know of a record: how it ended, what it was made with, where it stands."""

    status: Status
    digests: Mapping[str, str]
    offset: int


class Index:
    """The last record of each (row, attempt), in well under 300 bytes each.

    Records stand in arrays, and so do digests of 16 hex digits; others are kept once each, as most records share them.
    """

    def __init__(self) -> None:
        self._place: dict[int, int] = {}
        self._status = array("b")
        self._offset = array("q")
        self._digests: dict[str, _Digests] = {}

    @classmethod
    def of(cls, path: Path) -> Index:
        """The index of the journal at `path`. Raises what `read` raises."""
        index = cls()
        for offset, record in read(path):
            index.add(record, offset)
        return index

    def add(self, record: Mapping[str, Any], offset: int) -> None:
        """Note a record; it replaces an earlier one of the same row and attempt."""
        status = STATUSES.index(record["outcome"])
        place = self._place.setdefault(_key(record["row"], record["attempt"]), len(self._status))
        if place == len(self._status):
            self._status.append(status)
            self._offset.append(offset)
        else:
            self._status[place], self._offset[place] = status, offset
        digests = record["digests"]
        for name in digests:
            self._digests.setdefault(name, _Digests())
        for name, column in self._digests.items():
            column.put(place, digests.get(name))

    def get(self, row: int, attempt: int) -> Entry | None:
        """The entry of this rollout, or None."""
        place = self._place.get(_key(row, attempt))
        return None if place is None else self._entry(place)

    def __len__(self) -> int:
        return len(self._place)

    def __contains__(self, key: tuple[int, int]) -> bool:
        return _key(*key) in self._place

    def items(self) -> Iterator[tuple[int, int, Entry]]:
        """Row, attempt and entry of each rollout, in the order they were first recorded."""
        for key, place in self._place.items():
            yield key >> _ATTEMPT_BITS, key & ((1 << _ATTEMPT_BITS) - 1), self._entry(place)

    def _entry(self, place: int) -> Entry:
        digests = {name: digest for name, column in self._digests.items() if (digest := column.get(place)) is not None}
        return Entry(STATUSES[self._status[place]], digests, self._offset[place])


class _Digests:
    """The digests of one name by place: a number each, or the place of its text."""

    def __init__(self) -> None:
        self._numbers = array("Q")
        self._kinds = array("b")
        self._texts: list[str] = []
        self._known: dict[str, int] = {}

    def put(self, place: int, digest: str | None) -> None:
        missing = place + 1 - len(self._numbers)
        if missing > 0:
            self._numbers.extend([0] * missing)
            self._kinds.extend([_ABSENT] * missing)
        if digest is None:
            self._kinds[place] = _ABSENT
        elif _HEX.fullmatch(digest):
            self._numbers[place], self._kinds[place] = int(digest, 16), _PLAIN
        else:
            number = self._known.setdefault(digest, len(self._texts))
            if number == len(self._texts):
                self._texts.append(digest)
            self._numbers[place], self._kinds[place] = number, _TEXT

    def get(self, place: int) -> str | None:
        kind = self._kinds[place] if place < len(self._kinds) else _ABSENT
        if kind == _ABSENT:
            return None
        return f"{self._numbers[place]:016x}" if kind == _PLAIN else self._texts[self._numbers[place]]


_ABSENT, _PLAIN, _TEXT = range(3)
_HEX = re.compile("[0-9a-f]{16}")
_ATTEMPT_BITS = 24


def _key(row: int, attempt: int) -> int:
    """Row and attempt in one number: a tuple would cost three times as much."""
    return row << _ATTEMPT_BITS | attempt
