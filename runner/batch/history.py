"""What a run has already: for each row and attempt its last line in the journal, in a few bytes.

Later lines supersede earlier ones. An entry is the line's place, its outcome, which version of the configuration made
it and a fingerprint of its row; the record itself is read again only when it is needed.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import isnan, nan
from typing import Any

from runner.records.rollout import STATUSES, Status

_STATUS_BITS, _VERSION_BITS = 3, 21
_NONE = 0


@dataclass(frozen=True, slots=True)
class Version:
    """One configuration that records were made with, by the digests of its result and its grade facts."""

    result: str
    grade: str


@dataclass(frozen=True, slots=True)
class Past:
    """What is known of one row and attempt. `place` is where its line starts; `content` fingerprints its row."""

    place: int
    status: Status
    version: int
    content: int
    reward: float | None


class _Row:
    __slots__ = ("contents", "index", "marks", "rewards")

    def __init__(self, index: int) -> None:
        self.index = index
        self.marks = array("Q")
        self.contents = array("q")
        self.rewards = array("d")

    def grow(self, size: int) -> None:
        missing = size - len(self.marks)
        if missing > 0:
            self.marks.extend([_NONE] * missing)
            self.contents.extend([0] * missing)
            self.rewards.extend([nan] * missing)


class History:
    """The index of a journal, filled line by line in the journal's order."""

    def __init__(self) -> None:
        self._rows: dict[str, _Row] = {}
        self.versions: list[Version] = []
        self._known: dict[Version, int] = {}
        self.lines = 0
        self.cost = 0.0
        self.tokens = 0

    def note(self, place: int, record: Mapping[str, Any]) -> None:
        """Take in a line that starts at byte `place`. Money spent counts also where a later line supersedes it."""
        row = self._rows.get(str(record["row_id"]))
        if row is None:
            row = self._rows[str(record["row_id"])] = _Row(int(record["row"]))
        attempt = int(record["attempt"])
        row.grow(attempt + 1)
        digests = record.get("digests") or {}
        version = self.version(Version(str(digests.get("config", "")), str(digests.get("grading", ""))))
        status = STATUSES.index(record["outcome"]) + 1
        row.marks[attempt] = ((place << _VERSION_BITS) | version) << _STATUS_BITS | status
        row.contents[attempt] = hash(digests.get("row", ""))
        row.rewards[attempt] = nan if record["reward"] is None else float(record["reward"])
        self.lines += 1
        if regraded := record.get("regraded"):
            self.cost += float(regraded.get("cost") or 0.0)
        else:
            usage = record.get("usage") or {}
            self.tokens += int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)
            self.cost += float(record.get("cost") or 0.0)

    def version(self, version: Version) -> int:
        """The number of a version, given out at first sight."""
        number = self._known.get(version)
        if number is None:
            number = self._known[version] = len(self.versions)
            self.versions.append(version)
        return number

    def find(self, row_id: str, attempt: int) -> Past | None:
        """The last line of this row and attempt, or None."""
        row = self._rows.get(row_id)
        if row is None or attempt >= len(row.marks) or row.marks[attempt] == _NONE:
            return None
        return _past(row, attempt)

    def is_current(self, place: int, record: Mapping[str, Any]) -> bool:
        """False for a line that a later one superseded."""
        past = self.find(str(record["row_id"]), int(record["attempt"]))
        return past is not None and past.place == place

    def __iter__(self) -> Iterator[tuple[str, int, Past]]:
        for row_id, row in self._rows.items():
            for attempt, mark in enumerate(row.marks):
                if mark != _NONE:
                    yield row_id, attempt, _past(row, attempt)

    def in_order(self) -> list[tuple[int, int, int]]:
        """Row index, attempt and place of every last line, in the order of the dataset and its attempts."""
        return sorted(
            (row.index, attempt, _past(row, attempt).place)
            for row in self._rows.values()
            for attempt, mark in enumerate(row.marks)
            if mark != _NONE
        )

    def __len__(self) -> int:
        return sum(mark != _NONE for row in self._rows.values() for mark in row.marks)

    @property
    def rows(self) -> int:
        return len(self._rows)

    @property
    def attempts(self) -> int:
        """The most attempts that any row has."""
        return max((len(row.marks) for row in self._rows.values()), default=0)


def _past(row: _Row, attempt: int) -> Past:
    mark, reward = row.marks[attempt], row.rewards[attempt]
    status = STATUSES[(mark & ((1 << _STATUS_BITS) - 1)) - 1]
    version = (mark >> _STATUS_BITS) & ((1 << _VERSION_BITS) - 1)
    place = mark >> (_STATUS_BITS + _VERSION_BITS)
    return Past(place, status, version, row.contents[attempt], None if isnan(reward) else reward)


def read_history(lines: Iterable[tuple[int, Mapping[str, Any]]]) -> History:
    """The history of a journal's lines, each with the byte it starts at."""
    history = History()
    for place, record in lines:
        history.note(place, record)
    return history
