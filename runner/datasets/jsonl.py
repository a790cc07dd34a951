"""JSON lines: one JSON object a line, UTF-8. Blank lines are skipped, a byte order mark and CRLF are accepted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from runner.datasets.dataset import DatasetError
from runner.datasets.reader import Offsets, Record, Wanted, decode

_BOM = b"\xef\xbb\xbf"

_WORDS = {
    "Expecting value": "a value is missing or is no JSON",
    "Expecting ',' delimiter": "a comma or a closing bracket is missing",
    "Expecting ':' delimiter": "a colon is missing after the key",
    "Expecting property name enclosed in double quotes": "a key in double quotes is missing",
    "Unterminated string starting at": "a string is not closed",
    "Invalid control character at": "a raw control character in a string; write it as an escape such as `\\n`",
    "Invalid \\escape": "an escape that JSON does not know",
    "Invalid \\uXXXX escape": "a `\\u` escape needs four hex digits",
    "Extra data": "something follows the record on its line",
    "Illegal trailing comma before end of object": "a comma before the closing brace",
    "Illegal trailing comma before end of array": "a comma before the closing bracket",
}


class JsonlReader:
    """Reads `path`. Raises `DatasetError` with `file:line:column` for a line that is no JSON object."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def header(self) -> None:
        return None

    def count(self) -> int:
        return sum(1 for _ in self._lines())

    def read(self, wanted: Wanted) -> Iterator[Record]:
        for index, (_, line, raw) in enumerate(self._lines()):
            if wanted(index):
                yield Record(index, line, parse_record(raw, self.path, line))

    def fetch(self, order: Sequence[int]) -> Iterator[Record]:
        offsets = self._offsets
        with self.path.open("rb") as file:
            for index in order:
                file.seek(offsets.starts[index])
                line = offsets.lines[index]
                yield Record(index, line, parse_record(file.readline(), self.path, line))

    @cached_property
    def _offsets(self) -> Offsets:
        return Offsets.of((start, line) for start, line, _ in self._lines())

    def _lines(self) -> Iterator[tuple[int, int, bytes]]:
        """Offset, line number and bytes of every line that is not blank."""
        position = 0
        with self.path.open("rb") as file:
            if file.read(len(_BOM)) == _BOM:
                position = len(_BOM)
            file.seek(position)
            for line, raw in enumerate(file, start=1):
                if not raw.isspace():
                    yield position, line, raw
                position += len(raw)


def parse_record(raw: bytes, path: Path, line: int) -> dict[str, Any]:
    """The object on one line. Raises `DatasetError` with its place."""
    text = decode(raw, path, line).rstrip("\r\n")
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        words = _WORDS.get(error.msg, error.msg[:1].lower() + error.msg[1:])
        raise DatasetError(f"{path}:{line}:{error.pos + 1}: not JSON: {words}", _hint(text)) from None
    except _NotJson as error:
        raise DatasetError(f"{path}:{line}: {error}", "write `null` for a value that is not there") from None
    except RecursionError:
        raise DatasetError(f"{path}:{line}: the record is nested too deeply") from None
    except ValueError as error:  # an integer of thousands of digits
        raise DatasetError(f"{path}:{line}: {error}", "write such a number as a string") from None
    if not isinstance(value, dict):
        kind = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}.get(type(value), "a number")
        hint = array_hint(path) if isinstance(value, list) else 'each line holds one object: `{"user_prompt": …}`'
        raise DatasetError(f"{path}:{line}: the record is {kind}, not an object", hint)
    return value


def array_hint(path: Path) -> str:
    """How to turn a JSON array into JSON lines."""
    return f"JSON lines are needed, one object a line: `jq -c '.[]' {path} > {path.stem}.jsonl`"


def _hint(text: str) -> str:
    if text.strip() in ("{", "["):
        return "each record stands on one line; `jq -c . FILE` writes it so"
    return ""


class _NotJson(Exception):
    pass


def _refuse(name: str) -> Any:
    raise _NotJson(f"`{name}` is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
