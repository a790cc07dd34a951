"""From an offset in a string's value to the place in the TOML text that wrote it."""

from __future__ import annotations

import re

from runner.diag.diagnostic import Place

_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[ \t]*\r?\n\s*|.)|(\r\n)", re.DOTALL)
_LINE_END = re.compile(r"(\r\n)")


def inside_string(place: Place, offset: int, length: int = 1) -> Place:
    """The place of `length` characters from `offset` of the value of the TOML string at `place`.

    Where `place` holds no TOML string (an environment variable, a bare word of `--set`), offsets count from its start.
    """
    raw = place.source.text[place.start : place.end]
    quote = _quote(raw)
    if not quote:
        return place.inside(offset, max(length, 1))
    start = len(quote)
    if len(quote) == 3:
        start += 2 if raw[3:5] == "\r\n" else 1 if raw[3:4] == "\n" else 0
    pattern = _ESCAPE if quote[0] == '"' else _LINE_END
    if pattern.search(raw, start):
        ends = _written(raw, start, pattern, offset, offset + max(length, 1))
        return place.inside(ends[0], max(ends[1] - ends[0], 1))
    return place.inside(start + offset, max(length, 1))


def _quote(raw: str) -> str:
    for quote in ('"""', "'''", '"', "'"):
        if raw.startswith(quote) and len(raw) >= 2 * len(quote):
            return quote
    return ""


def _written(raw: str, start: int, pattern: re.Pattern[str], *wanted: int) -> list[int]:
    """Raw offsets of the wanted value offsets: an escape, `\\r\\n` are one character, a line-ending backslash none."""
    found: list[int] = []
    raw_at, value_at = start, 0
    for want in wanted:
        while value_at < want and raw_at < len(raw):
            escape = pattern.match(raw, raw_at)
            if escape is None:
                raw_at, value_at = raw_at + 1, value_at + 1
            else:
                raw_at = escape.end()
                value_at += escape[1] is not None or "\n" not in escape.group()
        joined = pattern.match(raw, raw_at) if not found else None
        if joined is not None and joined[1] is None and "\n" in joined.group():
            raw_at = joined.end()  # a line-ending backslash right before the first character wanted
        found.append(raw_at)
    return found
