"""`render`: a report as text for people, readable without colour.

The first line of a finding is `file:line:column severity[code] message`, which editors and CI logs make clickable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from runner.diag.diagnostic import Diagnostic, Place, Report, Source
from runner.diag.line import show_line, visible
from runner.diag.secret import redacted

_CODES = {"error": "1;31", "warning": "1;33", "place": "1", "gutter": "1;34", "related": "1;34", "help": "1;36"}


@dataclass(frozen=True)
class _Mark:
    place: Place
    label: str
    primary: bool


def render(report: Report, *, color: bool) -> str:
    """All findings in the order of their places, and a line that counts them; empty for an empty report."""
    if not len(report):
        return ""
    painter = _Painter(color)
    blocks = ["\n".join(painter.finding(redacted(finding))) for finding in report]
    return "\n\n".join([*blocks, summary(report)]) + "\n"


def summary(report: Report) -> str:
    """`FILE: 3 errors, 1 warning`, or `3 errors in 2 files`."""
    counts = [_count(report.errors, "error")] if report.errors else []
    counts += [_count(report.warnings, "warning")] if report.warnings else []
    text = ", ".join(counts) or "nothing found"
    sources = [finding.place.source for finding in report if finding.place]
    files = list(dict.fromkeys(source.name for source in sources if source.origin == "file"))
    if len(files) == 1:
        return f"{visible(files[0])}: {text}"
    return f"{text} in {len(files)} files" if files else text


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


class _Painter:
    def __init__(self, color: bool) -> None:
        self.color = color

    def paint(self, text: str, role: str) -> str:
        return f"\x1b[{_CODES[role]}m{text}\x1b[0m" if self.color and text else text

    def finding(self, finding: Diagnostic) -> Iterator[str]:
        head = self.paint(f"{finding.severity}[{finding.code}]", finding.severity) + f" {visible(finding.message)}"
        yield f"{self.paint(_address(finding.place), 'place')} {head}" if finding.place else head
        marks = [_Mark(finding.place, finding.label, True)] if finding.place else []
        marks += [_Mark(place, label, False) for place, label in finding.related]
        width = max((len(_number(mark.place)) for mark in marks), default=1) or 1
        for index, group in enumerate(_by_source(marks)):
            if index or not finding.place:
                yield f"{' ' * width}{self.paint(':::', 'gutter')} {_address(group[0].place)}"
            yield from self.snippet(group, width, finding.severity)
        notes = [("help", text) for text in finding.helps] + [("note", text) for text in finding.notes]
        if marks and notes:
            yield self.gutter("", width)
        for kind, text in notes:
            yield from self.note(kind, text, width)

    def snippet(self, marks: list[_Mark], width: int, severity: str) -> Iterator[str]:
        yield self.gutter("", width)
        before: int | None = None
        for mark in sorted(marks, key=lambda one: (one.place.line, not one.primary, one.place.start)):
            place = mark.place
            if before is not None and place.line > before + 1:
                yield self.paint("...", "gutter")
            line = show_line(place.source, place.line, place.column - 1)
            if place.line != before:
                yield f"{self.gutter(_number(place), width)} {line.text}".rstrip()
            end = place.column - 1 + max(place.end - place.start, 1)
            under = line.underline(place.column - 1, end, "^" if mark.primary else "-")
            blanks = under[: len(under) - len(under.lstrip())]
            words = f"{under.lstrip()} {visible(mark.label)}".rstrip()
            yield f"{self.gutter('', width)} {blanks}{self.paint(words, severity if mark.primary else 'related')}"
            before = place.line

    def note(self, kind: str, text: str, width: int) -> Iterator[str]:
        first, *more = text.split("\n")
        lead = f"{' ' * width} {self.paint('=', 'gutter')} {self.paint(kind, 'help')}: "
        yield lead + visible(first)
        indent = " " * (width + len(kind) + 5)
        yield from (f"{indent}{visible(line)}".rstrip() for line in more)

    def gutter(self, number: str, width: int) -> str:
        return self.paint(f"{number:>{width}} |", "gutter")


def _address(place: Place) -> str:
    """`FILE:LINE:COLUMN`, or what was said on the command line or in the environment, secrets hidden."""
    if place.source.origin == "file":
        return visible(str(place))
    return f"{place.source.name}: {show_line(place.source, place.line, 0).text}"


def _number(place: Place) -> str:
    return str(place.line) if place.source.origin == "file" else ""


def _by_source(marks: Iterable[_Mark]) -> list[list[_Mark]]:
    groups: dict[Source, list[_Mark]] = {}
    for mark in marks:
        groups.setdefault(mark.place.source, []).append(mark)
    return list(groups.values())
