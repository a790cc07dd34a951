"""`read_document`: a TOML text as data, every key and value of which can be pointed at.

`tomllib` reads the data. Ranges come from `diag.span`, which runs only when the first place is asked for: a correct
file never pays for it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from runner.diag.diagnostic import Diagnostic, Path, Place, Report, Source
from runner.diag.reading import read_source
from runner.diag.span import Range, Spans, walk

__all__ = ["Document", "read_document", "read_source"]

DEEPEST = 64
"""Levels of tables and arrays within one another that a document may have."""


@dataclass(frozen=True, eq=False)
class Document:
    """A legal TOML text: its `data` as `tomllib` reads it, and the place of each path in it."""

    source: Source
    data: dict[str, Any]

    @cached_property
    def _spans(self) -> Spans:
        return walk(self.source.text)

    def key_place(self, path: Path) -> Place | None:
        """Where the key of `path` stands; None when the document has no such path.

        For a table it is the last part of its header, for a table that is only mentioned (`[a.b]` mentions `a`) that
        mention, for an array's element the element itself, for `()` the empty range at the start of the text.
        """
        return self._place(self._spans.keys, path)

    def value_place(self, path: Path) -> Place | None:
        """Where the value of `path` stands, quotes and brackets included; None when there is no such path.

        A table that is written under a header has the header, brackets included, for a value.
        """
        return self._place(self._spans.values, path)

    def paths(self) -> Iterable[Path]:
        """Every path of the document, tables and arrays before what they hold, in the order of `data`."""
        return _paths(self.data, ())

    def _place(self, ranges: dict[Path, Range], path: Path) -> Place | None:
        start, end = ranges.get(tuple(path), (0, 0))
        if path and (start, end) == (0, 0):
            return None
        return Place(self.source, start, end)


def read_document(source: Source, report: Report) -> Document | None:
    """Read `source` as TOML; on a syntax error add one `syntax` or `duplicate-key` finding and return None."""
    try:
        data = tomllib.loads(source.text)
    except (ValueError, RecursionError) as error:  # ValueError alone: an integer of more than 4,300 digits
        from runner.diag.syntax import explain_syntax

        report.add(explain_syntax(source, error))
        return None
    deep = _too_deep(data)
    if deep is None:
        return Document(source, data)
    place = Place(source, *walk(source.text).keys.get(deep[:1], (0, 0)))
    report.add(Diagnostic("syntax", f"`{deep[0]}` is nested more than {DEEPEST} levels deep", place, "flatten it"))
    return None


def _paths(value: Any, path: Path) -> Iterator[Path]:
    pairs: Iterable[tuple[str | int, Any]] = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list):
        pairs = enumerate(value)
    for key, child in pairs:
        yield (*path, key)
        yield from _paths(child, (*path, key))


def _too_deep(data: dict[str, Any]) -> Path | None:
    """A path longer than `DEEPEST`, if there is one: what walks the data may then recurse without fear."""
    waiting: list[tuple[Path, Any]] = [((), data)]
    while waiting:
        path, value = waiting.pop()
        if len(path) > DEEPEST:
            return path
        if isinstance(value, dict):
            waiting.extend(((*path, key), child) for key, child in value.items())
        elif isinstance(value, list):
            waiting.extend(((*path, index), child) for index, child in enumerate(value))
    return None
