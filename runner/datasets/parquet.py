"""Parquet, by pyarrow: the only file that imports it, when a Parquet file is opened.

A shuffled pass would decode a row group for every record, so it writes the chosen records to a temporary file of
JSON lines first and reads that by offset.
"""

from __future__ import annotations

import json
import tempfile
from array import array
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from runner.datasets.dataset import DatasetError
from runner.datasets.reader import Record, Wanted

_BATCH = 256
"""Records decoded at a time; small because one field may hold megabytes."""


class ParquetReader:
    """Reads `path`. Raises `DatasetError` if pyarrow is missing or the file is broken."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def header(self) -> tuple[str, ...]:
        return self._shape[0]

    def count(self) -> int:
        return self._shape[1]

    def read(self, wanted: Wanted) -> Iterator[Record]:
        first = 0
        for batch in self._batches():
            chosen = [position for position in range(batch.num_rows) if wanted(first + position)]
            if chosen:
                records = self._decode(batch, first)
                for position in chosen:
                    yield Record(first + position, 0, records[position])
            first += batch.num_rows

    def fetch(self, order: Sequence[int]) -> Iterator[Record]:
        with tempfile.TemporaryFile(prefix="osmosis-run-") as spool:
            starts = self._spool(spool, order)
            for index in order:
                spool.seek(starts[index])
                yield Record(index, 0, json.loads(spool.readline()))

    def _spool(self, spool: Any, order: Sequence[int]) -> dict[int, int] | array[int]:
        """Write the chosen records in the order of the file; where each starts, by index."""
        chosen = set(order) if len(order) * 8 < self.count() else None
        starts: dict[int, int] | array[int] = {} if chosen is not None else array("q", bytes(8 * self.count()))
        wanted = (lambda index: True) if chosen is None else chosen.__contains__
        position = 0
        for record in self.read(wanted):
            starts[record.index] = position
            position += spool.write(json.dumps(record.data).encode() + b"\n")
        return starts

    def _decode(self, batch: Any, first: int) -> list[dict[str, Any]]:
        try:
            return [{name: _plain(value) for name, value in columns.items()} for columns in batch.to_pylist()]
        except (ValueError, OverflowError) as error:
            last = first + batch.num_rows - 1
            raise DatasetError(f"{self.path}: a value in rows {first} to {last} cannot be read: {error}") from None

    def _batches(self) -> Iterator[Any]:
        with self._open() as file:
            try:
                yield from file.iter_batches(batch_size=_BATCH)
            except (self._library.ArrowException, OSError) as error:
                raise self._broken(error) from None

    @cached_property
    def _shape(self) -> tuple[tuple[str, ...], int]:
        """The columns and the number of records."""
        with self._open() as file:
            return tuple(file.schema_arrow.names), int(file.metadata.num_rows)

    def _open(self) -> Any:
        library = self._library
        try:
            return library.parquet.ParquetFile(self.path)
        except (library.ArrowException, OSError) as error:
            raise self._broken(error) from None

    def _broken(self, error: Exception) -> DatasetError:
        said = " ".join(str(error).split()).rstrip(".")[:200]
        return DatasetError(f"{self.path}: not a readable Parquet file: {said}", "copy or download the file again")

    @cached_property
    def _library(self) -> Any:
        try:
            import pyarrow  # type: ignore[import-untyped]
            import pyarrow.parquet  # type: ignore[import-untyped]
        except ImportError:
            raise DatasetError(
                f"{self.path}: reading Parquet needs pyarrow, which is not installed",
                'pip install "osmosis-run[parquet]"',
            ) from None
        return pyarrow


def _plain(value: Any) -> Any:
    """The value as JSON has it: times in ISO form, decimals as text, maps as objects."""
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)
