"""`open_dataset`: a file to a `Dataset`. Selection, shuffle and limit act in this order, on indices of the file.

Nothing is held in memory but, with a shuffle, some numbers per record, and with an id column one hash per row.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from runner.datasets.dataset import DatasetError, Row
from runner.datasets.file import open_reader
from runner.datasets.reader import Reader, Record
from runner.datasets.select import Selection, parse_rows, shuffle

_ABSENT = object()
_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
"""Made once: `json.dumps` makes a new one for each row."""


class Missing(NamedTuple):
    """The first row that lacks the column at `path`."""

    path: tuple[str, ...]
    row: int
    line: int


def open_dataset(
    path: str | Path,
    *,
    format: str | None = None,
    id_column: str | None = None,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
    shuffle_seed: int | None = None,
    rows: str | Selection | None = None,
) -> FileDataset:
    """The dataset in the file at `path`. Only the file's beginning is read here.

    `format` is jsonl, csv or parquet, by default told by the name. `columns` maps our names to the file's (dots reach
    into nested objects). `rows` is a text such as `"3,7,10-20"`. Raises `DatasetError`, or
    `SelectionProblem` for `rows`.
    """
    selection = parse_rows(rows) if isinstance(rows, str) else rows
    reader = open_reader(Path(path), format)
    dataset = FileDataset(reader, Naming(id_column, dict(columns or {})), Choice(selection, shuffle_seed, limit))
    dataset.check_header()
    return dataset


class Naming(NamedTuple):
    """What columns are called: `id` names the rows, `columns` maps our names to the file's."""

    id: str | None
    columns: Mapping[str, str]


class Choice(NamedTuple):
    """Which rows, in which order."""

    selection: Selection | None
    seed: int | None
    limit: int | None


class FileDataset:
    """A `Dataset` over one file. Each pass opens and reads the file anew."""

    def __init__(self, reader: Reader, naming: Naming, choice: Choice) -> None:
        self.path = reader.path
        self._reader = reader
        self._naming = naming
        self._choice = choice

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of the file's bytes, 64 hex characters."""
        try:
            with self.path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise DatasetError(f"{self.path}: cannot be read: {error.strerror}") from None

    def rows(self) -> Iterator[Row]:
        """Every selected row in order. Raises `DatasetError` with `file:line` for a record that cannot be read."""
        seen: set[int] = set()
        for record in self._records():
            row = self._row(record)
            if self._naming.id is not None:
                mark = hash(row.id)
                if mark in seen:
                    self._refuse_duplicate(row)
                seen.add(mark)
            yield row

    def count(self) -> int:
        """How many rows `rows` yields, without reading them. Raises `DatasetError` if there is none."""
        total = self._total()
        selection = self._choice.selection
        selected = total if selection is None else len(selection)
        return selected if self._choice.limit is None else min(selected, self._choice.limit)

    def columns(self, sample: int = 100) -> tuple[str, ...]:
        """The names of columns in the first `sample` selected rows, in order of appearance, ours included."""
        names: dict[str, None] = {}
        for row in islice(self.rows(), sample):
            names.update(dict.fromkeys(row.data))
        return tuple(names)

    def missing(self, needed: Sequence[tuple[str, ...]]) -> list[Missing]:
        """For each path inside a row (`("meta", "level")`), the first selected row that has nothing there.

        Reads every row until each path was missed once; a null is there. Raises what `rows` raises.
        """
        wanted = dict.fromkeys(needed)
        found: dict[tuple[str, ...], Missing] = {}
        for row in self.rows():
            for path in wanted:
                if path not in found and _reach(row.data, path) is _ABSENT:
                    found[path] = Missing(path, row.index, row.line)
        return [found[path] for path in wanted if path in found]

    def place(self, row: Row) -> str:
        """Where a row is, for a message: `file:line`, or `file: row 3` where there are no lines."""
        return _place(self.path, row.index, row.line)

    def check_header(self) -> None:
        """Where the file names its columns, refuse a mapping from or an id in a column that is not there."""
        header = self._reader.header()
        wanted = [*self._naming.columns.values(), *([self._naming.id] if self._naming.id else [])]
        for name in wanted if header is not None else ():
            known = [*(header or ()), *self._naming.columns]
            if name not in known and name.split(".")[0] not in known:
                raise DatasetError(f"{self.path}: there is no column `{name}`", _near(name, known), column=name)

    def _records(self) -> Iterator[Record]:
        selection, seed, limit = self._choice
        try:
            if seed is not None:
                yield from self._reader.fetch(self._order(seed))
                return
            wanted = (lambda index: True) if selection is None else selection.__contains__
            yielded = 0
            for record in self._reader.read(wanted):
                if limit is not None and yielded >= limit:
                    return
                yield record
                yielded += 1
                if selection is not None and record.index == selection.last:
                    return
            if yielded == 0 or selection is not None:
                self._total()  # says what is wrong: no record at all, or a selection past the end
        except OSError as error:
            raise DatasetError(f"{self.path}: cannot be read: {error.strerror or error}") from None

    def _order(self, seed: int) -> array[int]:
        total = self._total()
        selection = self._choice.selection
        return shuffle(array("q", range(total) if selection is None else selection), seed, self._choice.limit)

    def _total(self) -> int:
        total = self._reader.count()
        if total == 0:
            raise DatasetError(f"{self.path}: the dataset has no record")
        selection = self._choice.selection
        if selection is not None and selection.last >= total:
            there = "1 row (0)" if total == 1 else f"{total} rows (0 to {total - 1})"
            raise DatasetError(f"{self.path}: row {selection.last} is selected, and the file has {there}")
        return total

    def _row(self, record: Record) -> Row:
        data = record.data
        if self._naming.columns:
            data = _mapped(data, self._naming.columns)
        return Row(record.index, self._id(record, data), data, self._digest(record, data), record.line)

    def _id(self, record: Record, data: Mapping[str, Any]) -> str:
        if self._naming.id is None:
            return str(record.index)
        value = look_up(data, self._naming.id)
        if value is _ABSENT or value is None or value == "" or isinstance(value, dict | list):
            what = "is no text or number" if isinstance(value, dict | list) else "is missing or empty"
            where = _place(self.path, record.index, record.line)
            raise DatasetError(
                f"{where}: the id column `{self._naming.id}` {what}",
                _near(self._naming.id, data),
                column=self._naming.id,
            )
        return str(value)

    def _digest(self, record: Record, data: Mapping[str, Any]) -> str:
        """16 hex characters over the canonical JSON: making it also finds what cannot be sent to a model."""
        try:
            return hashlib.sha256(_CANONICAL.encode(data).encode()).hexdigest()[:16]
        except UnicodeEncodeError as error:
            what = f"a lone surrogate (U+{ord(error.object[error.start]):04X}), half a character that cannot be sent"
        except ValueError:
            what = "a number that JSON cannot hold (NaN or infinite)"
        where = _place(self.path, record.index, record.line)
        raise DatasetError(f"{where}: {_column_at_fault(data)}holds {what}")

    def _refuse_duplicate(self, row: Row) -> None:
        """Two ids with one hash: an error if they are the same, and the place of the first is looked up again."""
        for record in self._records():
            if record.index == row.index:
                return
            if self._row(record).id == row.id:
                first = f"line {record.line}" if record.line else f"row {record.index}"
                message = f"{self.place(row)}: the id `{row.id}` is used twice, first on {first}"
                raise DatasetError(message, f"ids in `{self._naming.id}` must differ")


def _place(path: Path, index: int, line: int) -> str:
    return f"{path}:{line}" if line else f"{path}: row {index}"


def look_up(data: Mapping[str, Any], name: str) -> Any:
    """The column `name`, or the value its dots lead to; `_ABSENT` if there is none."""
    return data[name] if name in data else _reach(data, name.split("."))


def _reach(data: Mapping[str, Any], path: Sequence[str]) -> Any:
    value: Any = data
    for step in path:
        if not isinstance(value, Mapping) or step not in value:
            return _ABSENT
        value = value[step]
    return value


def _mapped(data: dict[str, Any], columns: Mapping[str, str]) -> dict[str, Any]:
    """The record with our names added. A name whose column is absent is absent too, whatever the record calls so."""
    mapped = dict(data)
    for ours, theirs in columns.items():
        value = look_up(data, theirs)
        if value is _ABSENT:
            mapped.pop(ours, None)
        else:
            mapped[ours] = value
    return mapped


def _column_at_fault(data: Mapping[str, Any]) -> str:
    for name, value in data.items():
        try:
            json.dumps([name, value], ensure_ascii=False, allow_nan=False).encode()
        except ValueError:  # UnicodeEncodeError is one
            return f"column {ascii(name)[1:-1]!r} " if not name.isascii() else f"column `{name}` "
    return "the record "


def _near(name: str, known: Any) -> str:
    from difflib import get_close_matches

    names = [str(each) for each in known]
    match = get_close_matches(name, names, n=1, cutoff=0.6)
    if match:
        return f"did you mean `{match[0]}`?"
    return "there is " + ", ".join(f"`{each}`" for each in names[:12]) if names else ""
