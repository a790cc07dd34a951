"""CSV: a header line, then one record after another; fields may hold quoted line ends. Every value is text.

The separator is a comma, or a tab in a `.tsv`, or what the header uses if it has no comma (`;` or a tab).
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import IO

from runner.datasets.dataset import DatasetError
from runner.datasets.reader import Offsets, Record, Wanted, decode

_BOM = b"\xef\xbb\xbf"
FIELD_LIMIT = 1 << 28
"""Bytes of one field. A quote that is never closed would otherwise swallow the file up to this much."""


class CsvReader:
    """Reads `path`. Raises `DatasetError` with `file:line` for a record that does not fit the header."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def header(self) -> tuple[str, ...]:
        return self._header[0]

    def count(self) -> int:
        return sum(1 for _ in self._records())

    def read(self, wanted: Wanted) -> Iterator[Record]:
        names = self.header()
        for index, (_, line, fields) in enumerate(self._records()):
            if wanted(index):
                yield Record(index, line, dict(zip(names, fields, strict=True)))

    def fetch(self, order: Sequence[int]) -> Iterator[Record]:
        offsets, names = self._offsets, self.header()
        with self.path.open("rb") as file:
            for index in order:
                file.seek(offsets.starts[index])
                line = offsets.lines[index]
                fields = next(_Fields(file, self.path, self._delimiter, line).records())[2]
                yield Record(index, line, dict(zip(names, fields, strict=True)))

    @cached_property
    def _offsets(self) -> Offsets:
        return Offsets.of((start, line) for start, line, _ in self._records())

    @cached_property
    def _delimiter(self) -> str:
        with self.path.open("rb") as file:
            first = decode(file.readline(), self.path, 1)
        if self.path.suffix.lower() == ".tsv":
            return "\t"
        return next((mark for mark in (",", ";", "\t") if mark in first), ",")

    @cached_property
    def _header(self) -> tuple[tuple[str, ...], int, int]:
        """The column names, and where the records begin: offset and line."""
        with self.path.open("rb") as file:
            if file.read(len(_BOM)) != _BOM:
                file.seek(0)
            fields = _Fields(file, self.path, self._delimiter, 1)
            _, line, names = next(fields.records(), (0, 1, []))
            self._check(names, line)
            return tuple(names), fields.position, fields.line

    def _check(self, names: list[str], line: int) -> None:
        if not names:
            raise DatasetError(f"{self.path}: the file is empty", "a CSV file begins with a line of column names")
        for column, name in enumerate(names, start=1):
            if not name.strip():
                raise DatasetError(
                    f"{self.path}:{line}: column {column} has no name", "the first line must name every column"
                )
            if name in names[: column - 1]:
                first = names.index(name) + 1
                raise DatasetError(f"{self.path}:{line}: columns {first} and {column} are both called `{name}`")

    def _records(self) -> Iterator[tuple[int, int, list[str]]]:
        names, start, line = self._header
        with self.path.open("rb") as file:
            file.seek(start)
            for place, at, fields in _Fields(file, self.path, self._delimiter, line).records():
                if len(fields) != len(names):
                    raise DatasetError(
                        f"{self.path}:{at}: the record has {_fields(len(fields))}, the header has {len(names)}",
                        'a field that holds a separator or a line end stands in double quotes: "a, b"',
                    )
                yield place, at, fields


def _fields(count: int) -> str:
    return f"{count} field" if count == 1 else f"{count} fields"


class _Fields:
    """Parses from where `file` stands; knows how many bytes and lines it has used, for the records' places."""

    def __init__(self, file: IO[bytes], path: Path, delimiter: str, line: int) -> None:
        self.path = path
        self.line = line
        self.position = file.tell()
        self._file = file
        if csv.field_size_limit() < FIELD_LIMIT:
            csv.field_size_limit(FIELD_LIMIT)
        self._reader = csv.reader(self._lines(), delimiter=delimiter, strict=True)

    def _lines(self) -> Iterator[str]:
        while raw := self._file.readline():
            text = decode(raw, self.path, self.line)
            self.position += len(raw)
            self.line += 1
            yield text

    def records(self) -> Iterator[tuple[int, int, list[str]]]:
        """Offset, line and fields of every record that is not a blank line."""
        while True:
            start, line = self.position, self.line
            try:
                fields = next(self._reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise DatasetError(f"{self.path}:{line}: {_words(str(error))}", _QUOTES) from None
            if fields:
                yield start, line, fields


_QUOTES = 'a quote inside a quoted field is written twice: "he said ""no"""'


def _words(message: str) -> str:
    if message.startswith("unexpected end of data"):
        return "a quote is opened in this record and never closed"
    if message.startswith("field larger"):
        return f"a field is larger than {FIELD_LIMIT >> 20} MiB; is a quote never closed?"
    expected = re.fullmatch(r"'(.)' expected after '\"'", message)
    return "a closing quote is followed by text" if expected else message
