"""`explain_duplicate`: a key or table that is defined twice, with the place of the first."""

from __future__ import annotations

from runner.diag.diagnostic import Diagnostic, Path, Place, Source
from runner.diag.span import Definition, Range, Spans


def explain_duplicate(source: Source, spans: Spans, at: int) -> Diagnostic | None:
    """The finding for the last statement that begins before the offset `at`; None when it defines nothing twice."""
    before = [one for one in spans.definitions if one.place[0] <= at]
    if not before:
        return None
    last = [one for one in before if one.statement == before[-1].statement]
    first: dict[Path, Definition] = {}
    for one in before:
        if one.path in first and one in last:
            return _twice(source, first[one.path], one)
        first.setdefault(one.path, one)
    return _clash(source, spans, last[0], first)


def _twice(source: Source, first: Definition, again: Definition) -> Diagnostic:
    name = shown(again.path)
    if first.header and again.header:
        message, cure = f"table `[{name}]` is defined twice", "merge the two tables, or rename one"
    elif first.header or again.header:
        message, cure = f"`{name}` is both a key and a table", "rename one of them"
    else:
        message, cure = f"`{name}` is set twice", "remove one of them"
    return _finding(source, message, again.place, cure, first.place)


def _clash(source: Source, spans: Spans, last: Definition, first: dict[Path, Definition]) -> Diagnostic | None:
    """A definition that needs a table where something else already stands, or a table where dotted keys made one."""
    for length in range(len(last.path) - 1, 0, -1):
        holder = first.get(last.path[:length])
        if holder is not None and not holder.header:
            if shown(last.path) == shown(holder.path):
                message = f"`{shown(last.path)}` is both a value and an array of tables"
                return _finding(source, message, last.place, "rename one of them", holder.place)
            message = f"`{shown(last.path)}` cannot be added to `{shown(holder.path)}`, which is already set to a value"
            return _finding(source, message, last.place, "remove it, or write it into the first", holder.place)
    path = tuple(part for part in last.path if isinstance(part, str)) if last.header else last.path
    places: list[Path] = [path, *(last.path[:length] for length in range(len(last.path), 0, -1))]
    for one in places:
        place = spans.mentions.get(one)
        if place is not None and place[1] <= last.place[0]:
            message, cure = _reopened(spans, last.path, one)
            return _finding(source, message, last.place, cure, place)
    return None


def _reopened(spans: Spans, path: Path, table: Path) -> tuple[str, str]:
    if (*table, 0) in spans.mentions and path[-1] != 0:
        return f"`{shown(table)}` is already an array of tables", f"write `[[{shown(table)}]]`, or rename one"
    if shown(path) == shown(table):
        return f"`{shown(table)}` is already a table", "write all its keys in one place"
    return f"`{shown(path)}` adds to the table `{shown(table)}`, which is complete", "write all its keys in one place"


def _finding(source: Source, message: str, place: Range, label: str, first: Range) -> Diagnostic:
    related = ((Place(source, *first), "first here"),)
    return Diagnostic("duplicate-key", message, Place(source, *place), label, related=related)


def shown(path: Path) -> str:
    """`path` as a user writes it, indices of arrays of tables left out."""
    return ".".join(part for part in path if isinstance(part, str))
