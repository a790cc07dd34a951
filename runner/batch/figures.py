"""Numbers, bars and columns as plain text: what the terminal summary is drawn with.

Only signs that the console can spell in ASCII are used, and every style returns text of the same visible width.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.diag.style import Style

PAGE = 80
"""Columns of what is not printed to a narrower terminal."""


class Plain:
    """The style without colour, by default as wide as a page."""

    def __init__(self, width: int = PAGE) -> None:
        self.width = width

    def ok(self, text: str) -> str:
        return text

    warn = bad = dim = bold = name = ok


OUTCOME_SIGNS = {"scored": "█", "ungraded": "?", "failed": "✗", "cancelled": "–", "missing": "·"}


def number(value: float | None, digits: int = 3) -> str:
    """`0.812`; `–` for a value that is not known."""
    if value is None:
        return "–"
    if abs(value) >= 1000 or (value != 0 and abs(value) < 10**-digits / 2):
        return f"{value:.3g}"
    return f"{value:.{digits}f}"


def percent(value: float | None) -> str:
    """A share as `81.2 %`."""
    return "–" if value is None else f"{value * 100:.1f} %"


def money(value: float | None) -> str:
    """USD, with as many digits as a small sum needs."""
    if value is None:
        return "cost unknown"
    return f"${value:,.2f}" if value >= 1 or value == 0 else f"${value:.4f}"


def duration(seconds: float) -> str:
    """`850 ms`, `12.3 s`, `4 m 05 s`, `2 h 07 m`."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} m {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} m"


def many(count: int, noun: str) -> str:
    """`1 row`, `1,319 rows`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def short(value: float) -> str:
    """A large count in few letters: `1.2M`, `34k`, `512`."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if value >= size:
            scaled = value / (1e3 if letter == "k" else size)
            return f"{scaled:.1f}{letter}" if scaled < 100 else f"{scaled:.0f}{letter}"
    return f"{value:,.0f}"


def clip(text: str, width: int) -> str:
    """`text` on one line of at most `width` characters; what is cut is marked."""
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: max(0, width - 1)] + "…"


def wrapped(text: str, width: int, most: int) -> list[str]:
    """`text` on at most `most` lines; what is cut is marked."""
    from textwrap import wrap

    lines = wrap(" ".join(text.split()), width)
    return lines if len(lines) <= most else [*lines[: most - 1], clip(" ".join(lines[most - 1 :]), width)]


def strip(estimate: Mapping[str, Any], width: int, style: Style) -> str:
    """An interval drawn on the line from 0 to 1: `·····███│██····`; blank where it does not lie there.

    Nothing in a `width` of 0.
    """
    mean = estimate.get("mean", estimate.get("value"))
    low, high = estimate.get("low"), estimate.get("high")
    if not width or mean is None or low is None or high is None or low < 0 or high > 1:
        return " " * width
    first, last, middle = (_cell(value, width) for value in (low, high, mean))
    inside = "█" * (middle - first), "█" * (last - middle)
    return (
        style.dim("·" * first)
        + style.name(inside[0])
        + style.bold("│")
        + style.name(inside[1])
        + style.dim("·" * (width - 1 - last))
    )


def _cell(share: float, width: int) -> int:
    return min(width - 1, max(0, round(share * (width - 1))))


def outcome_bar(counts: Mapping[str, int], width: int, style: Style) -> str:
    """Outcomes as one bar; whatever happened at all has at least one cell."""
    total = sum(counts.values())
    if total == 0:
        return style.dim(OUTCOME_SIGNS["missing"] * width)
    cells = {name: max(1, round(count * width / total)) for name, count in counts.items() if count}
    excess = sum(cells.values()) - width
    largest = max(cells, key=lambda name: cells[name])
    cells[largest] = max(1, cells[largest] - excess)
    return "".join(_paint(name, style)(OUTCOME_SIGNS[name] * count) for name, count in cells.items())


def outcome_words(counts: Mapping[str, int], style: Style) -> str:
    """`472 scored · 3 ungraded ? · 5 failed ✗`: the counts, with the sign each has in the bar."""
    words = []
    for name, count in counts.items():
        if count or name == "scored":
            word = f"{OUTCOME_SIGNS[name]} {count:,} {'not run' if name == 'missing' else name}"
            words.append(_paint(name, style)(word))
    return "   ".join(words)


def _paint(name: str, style: Style) -> Any:
    return {"scored": style.ok, "ungraded": style.warn, "failed": style.bad}.get(name, style.dim)


def columns(rows: Sequence[Sequence[str]], right: Sequence[int] = (), gap: str = "  ") -> list[str]:
    """Rows of plain text as aligned lines; the columns in `right` are right-aligned."""
    if not rows:
        return []
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) if place in right else cell.ljust(width)
                 for place, (cell, width) in enumerate(zip(row, widths, strict=True))]  # fmt: skip
        lines.append(gap.join(cells).rstrip())
    return lines
