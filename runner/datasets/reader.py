"""`Reader`: the records of one file, whatever its format, and the few things every format does alike.

A reader never holds the records: a pass streams, and a shuffled pass keeps one offset and one line number per record.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from runner.datasets.dataset import DatasetError

Wanted = Callable[[int], bool]
"""Whether the record at this index of the file is to be read."""


@dataclass(frozen=True, slots=True)
class Record:
    """One record as the file has it: its index (from 0), the line it starts on (from 1, 0 if none), its columns."""

    index: int
    line: int
    data: dict[str, Any]


class Reader(Protocol):
    """What a format must offer. Every method raises `DatasetError`."""

    path: Path

    def header(self) -> tuple[str, ...] | None:
        """The columns every record has, or None where each record brings its own."""
        ...

    def count(self) -> int:
        """How many records the file holds, without parsing more than that takes."""
        ...

    def read(self, wanted: Wanted) -> Iterator[Record]:
        """The wanted records in the order of the file."""
        ...

    def fetch(self, order: Sequence[int]) -> Iterator[Record]:
        """The records at these indices, in this order."""
        ...


@dataclass(slots=True)
class Offsets:
    """Where each record starts: byte offset and line number, 16 bytes a record."""

    starts: array[int]
    lines: array[int]

    @classmethod
    def of(cls, places: Iterator[tuple[int, int]]) -> Offsets:
        offsets = cls(array("q"), array("q"))
        for start, line in places:
            offsets.starts.append(start)
            offsets.lines.append(line)
        return offsets


def decode(raw: bytes, path: Path, line: int) -> str:
    """The text of one line. Raises `DatasetError` with its place if it is not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        column = len(raw[: error.start].decode("utf-8", "replace")) + 1
        byte = f"0x{raw[error.start]:02x}"
        raise DatasetError(
            f"{path}:{line}:{column}: byte {byte} is not UTF-8 text",
            f"save the file as UTF-8, for instance `iconv -f LATIN1 -t UTF-8 {path} > utf8{path.suffix}`",
        ) from None
