"""`Page`: a TOML text being written, comments included, which no library that dumps data would keep."""

from __future__ import annotations

import json
import re
import textwrap
from dataclasses import dataclass, field
from typing import Any

WIDTH = 116
_BARE = re.compile(r"[A-Za-z0-9_-]+")


@dataclass
class Table:
    """One table of the page: lines of keys and comments in the order they were said."""

    lines: list[str] = field(default_factory=list)
    keys: dict[str, Any] = field(default_factory=dict)

    def set(self, key: str, value: Any, comment: str = "") -> None:
        """`key = value`, with `comment` behind it, or above it where it is long."""
        line = f"{name_text(key)} = {value_text(value)}"
        if comment and len(line) + len(comment) + 5 <= WIDTH and "\n" not in comment:
            line += f"    # {comment}"
        elif comment:
            self.comment(comment)
        self.keys[key] = value
        self.lines.append(line)

    def comment(self, text: str) -> None:
        """A comment of its own, folded to the width of the page."""
        for part in text.split("\n"):
            folded = textwrap.wrap(part, WIDTH - 2, break_long_words=False, break_on_hyphens=False)
            self.lines += [f"# {_printable(line)}" for line in folded]


@dataclass
class Page:
    """Tables by their dotted names, in the order of their first mention; `head` stands above them."""

    head: list[str] = field(default_factory=list)
    tables: dict[str, Table] = field(default_factory=dict)
    tail: Table = field(default_factory=Table)

    def table(self, name: str) -> Table:
        return self.tables.setdefault(name, Table())

    def text(self) -> str:
        """The page as TOML. A table with comments alone is written as comments."""
        blocks = ["\n".join(self.head)] if self.head else []
        for name, table in self.tables.items():
            if table.lines:
                header = f"[{name}]" if table.keys else f"# [{name}]"
                blocks.append("\n".join([header, *table.lines]))
        if self.tail.lines:
            blocks.append("\n".join(self.tail.lines))
        return "\n\n".join(blocks) + "\n"


def name_text(name: str) -> str:
    """A key as TOML writes it."""
    return name if _BARE.fullmatch(name) else value_text(name)


def value_text(value: Any) -> str:
    """A string, number, switch, array or table as TOML writes it on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON's escapes are TOML's; only U+007F is a control character to TOML alone.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(value_text, value))}]"
    inner = ", ".join(f"{name_text(key)} = {value_text(one)}" for key, one in value.items())
    return f"{{ {inner} }}" if inner else "{}"


def _printable(line: str) -> str:
    """A comment may hold anything but control characters."""
    return "".join(character if character.isprintable() else "?" for character in line)
