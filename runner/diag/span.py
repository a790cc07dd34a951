"""`walk`: where every key and value of a TOML text stands.

`tomllib` is the judge of what is legal and what it means, but gives no positions. The walker here reads the same text
again and only records ranges, so it trusts the text; on a text that is not TOML it stops at the first thing it cannot
read and keeps what it saw, which is what the explanation of a syntax error needs.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field

from runner.diag.diagnostic import Path

Range = tuple[int, int]
"""Half-open character offsets `(start, end)`."""

_BLANK = re.compile(r"[ \t]*")
_BLANK_LINES = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})' r"|'''.*?'''(?:'{0,2})" r'|"(?!"")(?:\\.|[^"\\\n])*"' r"|'(?!'')[^'\n]*'",
    re.DOTALL,
)
_SCALAR = re.compile(r"\d{4}-\d\d-\d\d \d\d:[^\s,\]}#]+|[^\s,\[\]{}#\"'=]+")


@dataclass(frozen=True)
class Definition:
    """One explicit definition: `path` was given a value or a header, in the `statement`-th statement."""

    path: Path
    place: Range
    statement: int
    header: bool


@dataclass
class Spans:
    """The ranges of one text.

    `keys` and `values` hold every path, `mentions` where each was first named. `definitions` are in the order of the
    text. When the text could not be read
    to its end, `lost` is the offset of the token that could not be read and `open` are the offsets of the brackets
    not yet closed, outermost first.
    """

    keys: dict[Path, Range] = field(default_factory=dict)
    values: dict[Path, Range] = field(default_factory=dict)
    mentions: dict[Path, Range] = field(default_factory=dict)
    definitions: list[Definition] = field(default_factory=list)
    lost: int | None = None
    open: list[int] = field(default_factory=list)


def walk(text: str) -> Spans:
    """The ranges of all keys and values in `text`; never raises on bad text, see `Spans.lost`."""
    walker = _Walker(text)
    try:
        walker.document()
    except _LostError as error:
        walker.spans.lost = error.offset
    except RecursionError:  # of a text that `tomllib` cannot read either
        walker.spans.lost = walker.at
    return walker.spans


class _LostError(Exception):
    def __init__(self, offset: int) -> None:
        self.offset = offset


class _Walker:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.spans = Spans()
        self.statement = 0
        self.table: Path = ()
        self.lengths: dict[Path, int] = {}  # of arrays of tables
        self.explicit: set[Path] = set()

    def document(self) -> None:
        while True:
            self.skip(_BLANK_LINES)
            if self.at >= len(self.text):
                return
            self.statement += 1
            if self.text.startswith("[[", self.at):
                self.header(2)
            elif self.text.startswith("[", self.at):
                self.header(1)
            else:
                self.key_value(self.table)
            self.line_end()

    def header(self, brackets: int) -> None:
        start = self.at
        self.at += brackets
        parts = self.key()
        self.expect("]" * brackets)
        path: Path = ()
        for name, place in parts[:-1]:
            path = (*path, name)
            self.implicit(path, place, place)
            path = self.last_element(path)
        name, place = parts[-1]
        path = (*path, name)
        if brackets == 2:
            index = self.lengths.get(path, 0)
            self.lengths[path] = index + 1
            self.implicit(path, place, (start, self.at))
            path = (*path, index)
        self.define(path, place, (start, self.at), header=True)
        self.table = path

    def last_element(self, path: Path) -> Path:
        return (*path, self.lengths[path] - 1) if path in self.lengths else path

    def key_value(self, table: Path) -> None:
        parts = self.key()
        path = table
        for name, place in parts[:-1]:
            path = (*path, name)
            self.implicit(path, place, place)
        name, place = parts[-1]
        path = (*path, name)
        self.skip(_BLANK)
        self.expect("=")
        self.skip(_BLANK)
        self.define(path, place, (self.at, self.at))
        start = self.at
        self.value(path)
        self.spans.values[path] = (start, self.at)

    def key(self) -> list[tuple[str, Range]]:
        parts: list[tuple[str, Range]] = []
        while True:
            self.skip(_BLANK)
            start = self.at
            parts.append((self.key_part(), (start, self.at)))
            self.skip(_BLANK)
            if not self.text.startswith(".", self.at):
                return parts
            self.at += 1

    def key_part(self) -> str:
        if self.text.startswith(('"', "'"), self.at):
            raw = self.match(_STRING)
            if "\\" not in raw or raw[0] == "'":
                return raw[1:-1]
            try:
                return next(iter(tomllib.loads(f"{raw}=0")))
            except tomllib.TOMLDecodeError:
                raise _LostError(self.at - len(raw)) from None
        return self.match(_BARE_KEY)

    def value(self, path: Path) -> None:
        character = self.text[self.at : self.at + 1]
        if character == "[":
            self.array(path)
        elif character == "{":
            self.inline_table(path)
        elif character in ('"', "'"):
            self.match(_STRING)
        else:
            self.match(_SCALAR)

    def array(self, path: Path) -> None:
        self.spans.open.append(self.at)
        self.at += 1
        index = 0
        while True:
            self.skip(_BLANK_LINES)
            if self.text.startswith("]", self.at):
                break
            start = self.at
            self.value((*path, index))
            self.spans.keys[*path, index] = self.spans.values[*path, index] = (start, self.at)
            index += 1
            self.skip(_BLANK_LINES)
            if not self.comma("]"):
                break
        self.expect("]")
        self.spans.open.pop()

    def inline_table(self, path: Path) -> None:
        self.spans.open.append(self.at)
        self.at += 1
        self.skip(_BLANK)
        if not self.text.startswith("}", self.at):
            self.key_value(path)
            self.skip(_BLANK)
            while self.comma("}"):
                self.key_value(path)
                self.skip(_BLANK)
        self.expect("}")
        self.spans.open.pop()

    def comma(self, closing: str) -> bool:
        if self.text.startswith(closing, self.at):
            return False
        self.expect(",")
        return True

    def implicit(self, path: Path, key: Range, value: Range) -> None:
        self.spans.mentions.setdefault(path, key)
        self.spans.keys.setdefault(path, key)
        self.spans.values.setdefault(path, value)

    def define(self, path: Path, key: Range, value: Range, *, header: bool = False) -> None:
        self.spans.mentions.setdefault(path, key)
        self.spans.definitions.append(Definition(path, key, self.statement, header))
        if path not in self.explicit:  # a header or value of its own says more than a mention on the way
            self.explicit.add(path)
            self.spans.keys[path] = key
            self.spans.values[path] = value

    def line_end(self) -> None:
        self.skip(_BLANK)
        if self.at < len(self.text) and self.text[self.at] not in "\r\n#":
            raise _LostError(self.at)

    def skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()

    def match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if not found:
            raise _LostError(self.at)
        self.at = found.end()
        return found.group()

    def expect(self, word: str) -> None:
        if not self.text.startswith(word, self.at):
            raise _LostError(self.at)
        self.at += len(word)
