"""Reading a journal: streaming, and by offset.

A last line without its end is torn: no reader takes it, and `mend_tail` moves it away before anything is appended.
Zeros in a line are what a power failure leaves of a batch that was not synced yet: such a line is nobody's record.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.records.rollout import SCHEMA
from runner.store.errors import StoreError
from runner.store.run_folder import check_schema

_BLOCK = 1 << 16


def read(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every record with its offset, streaming; nothing if there is no file. A torn last line and zeros are left out.

    Raises `StoreError` with `file:line` for a line that is no record, or one that another version wrote.
    """
    offset = 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    return
                if b"\0" not in line:
                    yield offset, _parse(line, f"{path}:{number}")
                offset += len(line)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from None


def at(path: Path, offset: int) -> dict[str, Any]:
    """The record that starts at `offset`."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return _parse(file.readline(), f"{path}: at byte {offset}")
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from None


def _parse(line: bytes, where: str) -> dict[str, Any]:
    from pydantic_core import from_json

    said = ""
    try:
        record = from_json(line)
    except ValueError as error:
        record = _parse_slowly(line)
        said = str(error).partition(" at line ")[0]
    if record is _BROKEN:
        raise StoreError(
            f"{where}: is not JSON: {said}", "the line was damaged; take it out of the file and run the command again"
        ) from None
    if not isinstance(record, dict):
        raise StoreError(f"{where}: is not a record", "take the line out of the file and run the command again")
    check_schema(record.get("schema"), SCHEMA, where)
    return record


_BROKEN = object()


def _parse_slowly(line: bytes) -> Any:
    """The standard library reads deeper nesting than pydantic_core does."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return _BROKEN


def mend_tail(path: Path, descriptor: int) -> int:
    """Cut a torn last line off, keeping it in `<stem>.torn`; the size of the file afterwards. Raises OSError."""
    size = os.fstat(descriptor).st_size
    end = _whole_lines(descriptor, size)
    if end < size:
        with path.with_suffix(".torn").open("ab") as torn:
            torn.write(os.pread(descriptor, size - end, end) + b"\n")
            torn.flush()
            os.fsync(torn.fileno())
        os.ftruncate(descriptor, end)
        os.fsync(descriptor)
    return end


def _whole_lines(descriptor: int, size: int) -> int:
    """Where the last whole line ends."""
    end = size
    while end > 0:
        start = max(0, end - _BLOCK)
        found = os.pread(descriptor, end - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
