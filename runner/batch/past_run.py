"""A run folder, read: its manifest, which records count, and what they add up to.

A record counts when it is the last of its row and attempt, was made by the configuration of the manifest, and is of a
row that the last command asked for; everything else stays in the journal and is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from runner.batch.history import History, Past, Version, read_history
from runner.batch.plan import Groups, row_key
from runner.batch.selection import selected
from runner.batch.summary import Scope, summarise
from runner.batch.tally import Tally
from runner.store.journal_reading import at, read
from runner.store.record import is_repaired
from runner.store.run_folder import RunFolder

Record = Mapping[str, Any]


class PastRun:
    """A run on disk.

    `wanted` narrows it to some rows, each with the values of the manifest's `group_by`; by default the manifest says
    which. Where it does not, all of its configuration count, with the groups they were recorded with.
    """

    def __init__(self, folder: RunFolder, wanted: Mapping[int, Groups] | None = None) -> None:
        self.folder = folder
        self.manifest: Mapping[str, Any] = folder.manifest
        self._wanted = selected(self.manifest) if wanted is None else wanted
        self._history: History | None = None
        self._followed = 0
        self._running = Tally(float(self.manifest.get("pass_threshold", 1.0)))

    @classmethod
    def open(cls, path: Path) -> PastRun:
        """The run at `path`. Raises `StoreError` if there is none."""
        return cls(RunFolder.open(path))

    @property
    def name(self) -> str:
        return str(self.manifest.get("name") or self.folder.path.name)

    @property
    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        facts: Mapping[str, Mapping[str, Any]] = self.manifest.get("facts", {})
        return facts

    @cached_property
    def version(self) -> Version:
        digests = self.manifest["digests"]
        return Version(digests["config"], digests["grading"])

    @property
    def history(self) -> History:
        """The index of the journal, read at first use."""
        if self._history is None:
            self._history = read_history(read(self.folder.journal_path))
        return self._history

    def counts(self, record: Record) -> bool:
        """True if a last record was made by this configuration, and is wanted."""
        return not self._left_out(record)

    def _left_out(self, record: Record) -> str:
        """Why a last record does not count, or nothing."""
        digests, version = record.get("digests") or {}, self.version
        if digests.get("config") != version.result:
            return "of another configuration"
        if int(record["attempt"]) >= int(self.manifest["attempts"]) or not self._is_wanted(_key(record)):
            return "not asked for by the last command"
        if digests.get("grading") != version.grade and record["outcome"] in ("scored", "ungraded"):
            return "graded by other graders"
        return ""

    def _is_wanted(self, key: int) -> bool:
        return self._wanted is None or key in self._wanted

    def is_asked_for(self, row_id: str, attempt: int, past: Past) -> bool:
        """True if a last line counts, or would if it were graded as the manifest says."""
        ours = self.history.versions[past.version].result == self.version.result
        return ours and attempt < int(self.manifest["attempts"]) and self._is_wanted(row_key(row_id, past.content))

    def records(self) -> Iterator[Record]:
        """The records that count, in the journal's order."""
        return (record for place, record in self.lines() if self.history.is_current(place, record)
                and self.counts(record))  # fmt: skip

    def lines(self) -> Iterator[tuple[int, Record]]:
        """Every line of the journal with its offset."""
        return read(self.folder.journal_path)

    def in_order(self, left_out: Counter[str] | None = None) -> Iterator[Record]:
        """The records that count, in the order of the dataset and its attempts; others are counted by their reason."""
        for _, _, place in self.history.in_order():
            record = at(self.folder.journal_path, place)
            why = self._left_out(record)
            if not why:
                yield record
            elif left_out is not None:
                left_out[why] += 1

    def find(self, row: str, attempt: int | None = None) -> list[Record]:
        """The last records of a row, by its id or else its index, that count or not; of one attempt if it is given."""
        attempts = range(self.history.attempts) if attempt is None else (attempt,)
        found = [past for number in attempts if (past := self.history.find(row, number))]
        if not found and row.isdigit():
            places = [place for index, number, place in self.history.in_order()
                      if index == int(row) and number in attempts]  # fmt: skip
        else:
            places = [past.place for past in found]
        return [at(self.folder.journal_path, place) for place in places]

    def follow(self, place: int, line: bytes, record: Record) -> None:
        """Count a last record while its line is written, at byte `place`; superseded lines are not to be told.

        A journal that was followed from its first byte to its last need not be read again to be summed.
        """
        if place == self._followed and not is_repaired(line):
            self._followed += len(line)
            self._count(self._running, record, current=True)

    def tally(self) -> Tally:
        """What the records that count add up to; superseded lines count as spending only."""
        if self._followed and self._followed == self.folder.journal_path.stat().st_size:
            return self._running
        tally = Tally(self._running.threshold)
        for place, record in self.lines():
            self._count(tally, record, self.history.is_current(place, record))
        return tally

    def _count(self, tally: Tally, record: Record, current: bool) -> None:
        if current and self.counts(record):
            tally.add(record, self._groups(record))
        else:
            tally.spend(record)

    def _groups(self, record: Record) -> Mapping[str, Any]:
        columns = self.manifest.get("group_by")
        if not columns:
            return {}
        if self._wanted is not None:
            return dict(zip(columns, self._wanted[_key(record)], strict=False))
        recorded = record.get("groups") or {}
        return {column: recorded[column] for column in columns if column in recorded}

    def is_newer_than_summary(self) -> bool:
        """True if a command began, or records came, after the summary was written: it was killed."""
        folder = self.folder
        written = _modified(folder.summary_path)
        return max(_modified(folder.journal_path), _modified(folder.manifest_path)) > written

    def summary(self, stopped: str = "") -> dict[str, Any]:
        """The summary, computed now."""
        manifest = self.manifest
        bounds = manifest.get("reward_range")
        return summarise(
            self.tally(),
            Scope(
                name=self.name,
                rows=int(manifest["rows"]),
                attempts=int(manifest["attempts"]),
                reward_range=(bounds[0], bounds[1]) if bounds else None,
                stopped=stopped,
                measured=tuple(manifest.get("measured", ())),
            ),
        )


def _key(record: Record) -> int:
    return row_key(str(record["row_id"]), hash(record["digests"]["row"]))


def _modified(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def shown(path: Path) -> str:
    """A path as the user would type it: relative to the current folder where that is shorter."""
    try:
        text = str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
    return text
