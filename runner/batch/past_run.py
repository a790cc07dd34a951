"""A run folder, read: its manifest, which records count, and what they add up to.

A record counts when it is the last of its row and attempt and was made by the configuration of the manifest; what an
older configuration made stays in the journal and is not counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from runner.batch.history import History, Version, read_history
from runner.batch.plan import Groups, row_key
from runner.batch.summary import Scope, summarise
from runner.batch.tally import Tally
from runner.store.journal_reading import at, read
from runner.store.run_folder import RunFolder

Record = Mapping[str, Any]


class PastRun:
    """A run on disk.

    `wanted` narrows it to some rows, each with the values of the manifest's `group_by`; by default all of the
    manifest's configuration count, with the groups they were recorded with.
    """

    def __init__(self, folder: RunFolder, wanted: Mapping[int, Groups] | None = None) -> None:
        self.folder = folder
        self.manifest: Mapping[str, Any] = folder.manifest
        self._wanted = wanted
        self._history: History | None = None

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

    @property
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
        digests, version = record.get("digests") or {}, self.version
        if digests.get("config") != version.result:
            return False
        if digests.get("grading") != version.grade and record["outcome"] in ("scored", "ungraded"):
            return False
        if int(record["attempt"]) >= int(self.manifest["attempts"]):
            return False
        return self._wanted is None or _key(record) in self._wanted

    def records(self) -> Iterator[Record]:
        """The records that count, in the journal's order."""
        return (record for place, record in self.lines() if self.history.is_current(place, record)
                and self.counts(record))  # fmt: skip

    def lines(self) -> Iterator[tuple[int, Record]]:
        """Every line of the journal with its offset."""
        return read(self.folder.journal_path)

    def in_order(self) -> Iterator[Record]:
        """The records that count, in the order of the dataset and its attempts."""
        for _, _, place in self.history.in_order():
            record = at(self.folder.journal_path, place)
            if self.counts(record):
                yield record

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

    def tally(self) -> Tally:
        """What the records that count add up to; superseded lines count as spending only."""
        tally = Tally(float(self.manifest.get("pass_threshold", 1.0)))
        for place, record in self.lines():
            if self.history.is_current(place, record) and self.counts(record):
                tally.add(record, self._groups(record))
            else:
                tally.spend(record)
        return tally

    def _groups(self, record: Record) -> Mapping[str, Any] | None:
        if self._wanted is None:
            return None
        return dict(zip(self.manifest.get("group_by", ()), self._wanted[_key(record)], strict=False))

    def is_newer_than_summary(self) -> bool:
        """True if records came after the summary was written: a command was killed."""
        try:
            written = self.folder.summary_path.stat().st_mtime_ns
            return self.folder.journal_path.stat().st_mtime_ns > written
        except FileNotFoundError:
            return self.folder.journal_path.exists()

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
    return row_key(str(record["row_id"]), str(record["digests"]["row"]))


def shown(path: Path) -> str:
    """A path as the user would type it: relative to the current folder where that is shorter."""
    try:
        text = str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
    return text
