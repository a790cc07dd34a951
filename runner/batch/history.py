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


class _Column:
    """One attempt number of every row: the packed mark, the row's fingerprint and the reward, by row number."""

    __slots__ = ("contents", "marks", "rewards")

    def __init__(self) -> None:
        self.marks = array("Q")
        self.contents = array("q")
        self.rewards = array("d")

    def put(self, number: int, mark: int, content: int, reward: float) -> None:
        missing = number + 1 - len(self.marks)
        if missing > 0:
            self.marks.extend([_NONE] * missing)
            self.contents.extend([0] * missing)
            self.rewards.extend([nan] * missing)
        self.marks[number], self.contents[number], self.rewards[number] = mark, content, reward

    def get(self, number: int) -> Past | None:
        mark = self.marks[number] if number < len(self.marks) else _NONE
        if mark == _NONE:
            return None
        reward = self.rewards[number]
        status = STATUSES[(mark & ((1 << _STATUS_BITS) - 1)) - 1]
        version = (mark >> _STATUS_BITS) & ((1 << _VERSION_BITS) - 1)
        place = mark >> (_STATUS_BITS + _VERSION_BITS)
        return Past(place, status, version, self.contents[number], None if isnan(reward) else reward)


class History:
    """The index of a journal, filled line by line in the journal's order."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._indices = array("q")
        self._columns: list[_Column] = []
        self.versions: list[Version] = []
        self._known: dict[Version, int] = {}
        self.cost = 0.0
        self.tokens = 0

    def note(self, place: int, record: Mapping[str, Any]) -> None:
        """Take in a line that starts at byte `place`. Money spent counts also where a later line supersedes it."""
        attempt = int(record["attempt"])
        while len(self._columns) <= attempt:
            self._columns.append(_Column())
        digests = record.get("digests") or {}
        version = self.version(Version(str(digests.get("config", "")), str(digests.get("grading", ""))))
        status = STATUSES.index(record["outcome"]) + 1
        mark = ((place << _VERSION_BITS) | version) << _STATUS_BITS | status
        reward = nan if record["reward"] is None else float(record["reward"])
        self._columns[attempt].put(self._number(record), mark, hash(digests.get("row", "")), reward)
        self._spend(record)

    def _number(self, record: Mapping[str, Any]) -> int:
        row_id = str(record["row_id"])
        number = self._numbers.get(row_id)
        if number is None:
            number = self._numbers[row_id] = len(self._numbers)
            self._indices.append(int(record["row"]))
        return number

    def _spend(self, record: Mapping[str, Any]) -> None:
        if regraded := record.get("regraded"):
            self.cost += float(regraded.get("cost") or 0.0)
            return
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
        number = self._numbers.get(row_id)
        if number is None or attempt >= len(self._columns):
            return None
        return self._columns[attempt].get(number)

    def is_current(self, place: int, record: Mapping[str, Any]) -> bool:
        """False for a line that a later one superseded."""
        past = self.find(str(record["row_id"]), int(record["attempt"]))
        return past is not None and past.place == place

    def __iter__(self) -> Iterator[tuple[str, int, Past]]:
        for row_id, number in self._numbers.items():
            for attempt, column in enumerate(self._columns):
                past = column.get(number)
                if past is not None:
                    yield row_id, attempt, past

    def in_order(self) -> Iterator[tuple[int, int, int]]:
        """Row index, attempt and place of every last line, in the order of the dataset and its attempts."""
        for number in sorted(range(len(self._indices)), key=self._indices.__getitem__):
            for attempt, column in enumerate(self._columns):
                past = column.get(number)
                if past is not None:
                    yield self._indices[number], attempt, past.place

    def contents(self, result: str, attempts: int) -> Iterator[tuple[str, int]]:
        """Row id and content of each last line made by a configuration of this `result` digest, of so many attempts."""
        ours = {number for number, version in enumerate(self.versions) if version.result == result}
        for column in self._columns[:attempts]:
            for (row_id, _), mark, content in zip(self._numbers.items(), column.marks, column.contents, strict=False):
                if mark != _NONE and (mark >> _STATUS_BITS) & ((1 << _VERSION_BITS) - 1) in ours:
                    yield row_id, content

    @property
    def attempts(self) -> int:
        """The most attempts that any row has."""
        return len(self._columns)


def read_history(lines: Iterable[tuple[int, Mapping[str, Any]]]) -> History:
    """The history of a journal's lines, each with the byte it starts at."""
    history = History()
    for place, record in lines:
        history.note(place, record)
    return history
