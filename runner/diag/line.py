"""`Line`: one source line as a terminal shows it, so that a mark under it stands under the right characters.

Tabs become spaces, control characters become visible, wide characters count two columns and combining ones none,
secrets become `…`, and a long line is cut to a window around what is marked.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import accumulate

from runner.diag.diagnostic import Source
from runner.diag.secret import secret_ranges

WIDEST = 100
"""Columns of a source line that are shown."""
_BEFORE = 40
_TAB = 4


@dataclass(frozen=True)
class Cell:
    """What one character of the source takes up on the screen."""

    text: str
    width: int


@dataclass(frozen=True)
class Line:
    """The cells of a line, and the window of them `first:last` that is shown."""

    cells: tuple[Cell, ...]
    first: int
    last: int

    @property
    def text(self) -> str:
        shown = "".join(cell.text for cell in self.cells[self.first : self.last])
        return ("…" if self.first else "") + shown.rstrip() + ("…" if self.last < len(self.cells) else "")

    def underline(self, start: int, end: int, mark: str) -> str:
        """Blanks, then `mark` under the characters `start:end` (from 0) of the line, at least one."""
        before = (1 if self.first else 0) + self._width(self.first, start)
        return " " * before + mark * max(1, self._width(max(start, self.first), min(end, self.last)))

    def _width(self, start: int, end: int) -> int:
        return sum(cell.width for cell in self.cells[start:end])


_SECRET, _REST = Cell("…", 1), Cell("", 0)


def show_line(source: Source, number: int, focus: int) -> Line:
    """Line `number` of `source`, its window around the character `focus` (from 0)."""
    text = source.line_text(number)
    start = source.line_start(number)
    hidden = [(max(one - start, 0), min(two - start, len(text))) for one, two in secret_ranges(source)]
    cells = tuple(_cells(text, [pair for pair in hidden if pair[0] < pair[1]]))
    edges = [0, *accumulate(cell.width for cell in cells)]
    if edges[-1] <= WIDEST:
        return Line(cells, 0, len(cells))
    left = max(0, min(edges[min(focus, len(cells))] - _BEFORE, edges[-1] - WIDEST))
    first = next(index for index, edge in enumerate(edges) if edge >= left)
    last = max(index for index, edge in enumerate(edges) if edge <= edges[first] + WIDEST)
    return Line(cells, first, last)


def visible(text: str) -> str:
    """`text` on one line with every control character shown: nothing of a user's file may steer the terminal."""
    return "".join(cell.text for cell in _cells(text, []))


def _cells(text: str, hidden: list[tuple[int, int]]) -> list[Cell]:
    cells: list[Cell] = []
    column = 0
    for index, character in enumerate(text):
        secret = next((start for start, end in hidden if start <= index < end), None)
        cell = _cell(character, column) if secret is None else _SECRET if index == secret else _REST
        column += cell.width
        cells.append(cell)
    return cells


def _cell(character: str, column: int) -> Cell:
    if " " <= character <= "~":
        return Cell(character, 1)
    if character == "\t":
        width = _TAB - column % _TAB
        return Cell(" " * width, width)
    code = ord(character)
    if code < 32:
        return Cell(chr(0x2400 + code), 1)
    category = unicodedata.category(character)
    if category in ("Cc", "Cf", "Cs", "Zl", "Zp"):  # escape sequences, text direction, lone surrogates
        shown = f"<U+{code:04X}>"
        return Cell(shown, len(shown))
    if category in ("Mn", "Me"):
        return Cell(character, 0)
    return Cell(character, 2 if unicodedata.east_asian_width(character) in "WF" else 1)
