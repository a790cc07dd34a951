"""`Dataset`: rows in a fixed order, streamed, with a fingerprint of their content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True, slots=True)
class Row:
    """One record. `index` is its place in the file (from 0), whatever was selected or shuffled; `id` is unique.

    `data` is the record with the column mapping applied: `user_prompt`, `system_prompt`, `ground_truth`, `messages`
    where the dataset has them, beside every column under its own name. `digest` covers `data`.
    """

    index: int
    id: str
    data: Mapping[str, Any]
    digest: str
    line: int = 0


class Dataset(Protocol):
    """A dataset can be read again and again; each pass streams, so it may be larger than memory."""

    @property
    def fingerprint(self) -> str:
        """A digest of the file's content."""
        ...

    def rows(self) -> Iterator[Row]:
        """Every selected row in order. Raises `DatasetError` with `file:line` for a record that cannot be read."""
        ...


class DatasetError(Exception):
    """A record or a file that cannot be read. The message starts with `file:line:` where a line is known.

    `hint` says what to do about it, or is empty; `column` is the id or mapped column that is not there, or None.
    """

    def __init__(self, message: str, hint: str = "", *, column: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
        self.column = column
