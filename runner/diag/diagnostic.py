"""`Diagnostic`: one finding about a text, with its place. `Report`: all findings of one check."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""A key's path in a TOML document: `("tools", "search", "call")`; integers index arrays."""

Severity: TypeAlias = Literal["error", "warning"]
Origin: TypeAlias = Literal["file", "command line", "environment"]


@dataclass(frozen=True)
class Source:
    """A text that can be pointed into: a file, a `--set` word, or an environment variable.

    `name` is the path as shown to the user, `"command line"` or `"environment"`.
    """

    name: str
    text: str
    origin: Origin = "file"

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        for index, character in enumerate(self.text):
            if character == "\n":
                starts.append(index + 1)
        return starts

    def line_column(self, offset: int) -> tuple[int, int]:
        """Line and column of `offset`, both from 1, in characters."""
        from bisect import bisect_right

        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line_start(self, line: int) -> int:
        """The offset at which line `line` (from 1) begins."""
        return self._starts[line - 1]

    def line_text(self, line: int) -> str:
        """The text of line `line` (from 1), without its line end."""
        start = self._starts[line - 1]
        end = self._starts[line] - 1 if line < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


@dataclass(frozen=True)
class Place:
    """The half-open range `start:end` of character offsets in a source."""

    source: Source
    start: int
    end: int

    @property
    def line(self) -> int:
        return self.source.line_column(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.line_column(self.start)[1]

    def inside(self, offset: int, length: int = 1) -> Place:
        """A narrower place: `length` characters from `offset` of this one."""
        start = min(self.start + offset, self.end)
        return Place(self.source, start, min(start + length, self.end))

    def __str__(self) -> str:
        if self.source.origin != "file":
            return f"{self.source.name}: {self.source.text}"
        line, column = self.source.line_column(self.start)
        return f"{self.source.name}:{line}:{column}"


@dataclass(frozen=True)
class Fix:
    """A mechanical repair: put `text` in place of `place`."""

    place: Place
    text: str


@dataclass(frozen=True)
class Diagnostic:
    """One finding.

    `message` states the fact, `label` (under the caret) the cure, `helps` actions, `notes` evidence,
    `related` other places with a label each. `code` is a word of `diag.codes`.
    """

    code: str
    message: str
    place: Place | None = None
    label: str = ""
    helps: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    related: tuple[tuple[Place, str], ...] = ()
    severity: Severity = "error"
    fix: Fix | None = None


@dataclass
class Report:
    """All findings of one check, in the order of their places."""

    findings: list[Diagnostic] = field(default_factory=list)

    def add(self, finding: Diagnostic) -> None:
        """Add a finding, once."""
        if finding not in self.findings:
            self.findings.append(finding)

    def extend(self, other: Report) -> None:
        for finding in other.findings:
            self.add(finding)

    @property
    def errors(self) -> int:
        return sum(finding.severity == "error" for finding in self.findings)

    @property
    def warnings(self) -> int:
        return sum(finding.severity == "warning" for finding in self.findings)

    def sorted(self) -> list[Diagnostic]:
        """By file, then line and column; findings without a place first."""
        return sorted(self.findings, key=_order)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self.sorted())

    def __len__(self) -> int:
        return len(self.findings)


def _order(finding: Diagnostic) -> tuple[str, int, int]:
    place = finding.place
    if place is None:
        return ("", 0, 0)
    return (place.source.name, *place.source.line_column(place.start))


class ConfigError(Exception):
    """A file cannot be used. `report` says all that is wrong with it."""

    def __init__(self, report: Report) -> None:
        super().__init__(f"{report.errors} error{'s' if report.errors != 1 else ''} in the configuration")
        self.report = report
