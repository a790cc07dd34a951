"""Which lines of a text match, by a pattern that a model wrote: it may be wrong, and it may be endless."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any

PATIENCE = 5.0
"""Seconds of processor time that one search may spend on matching."""


class PatternFault(ValueError):
    """A pattern that cannot be searched for. The message is a sentence for whoever wrote it."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """What is looked for. Without `regex` the text itself; `whole_words` asks for a boundary on both sides."""

    text: str
    regex: bool = False
    case_sensitive: bool = False
    whole_words: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """A line that matches: its number and the column of the first match, both from 1."""

    line: int
    column: int


class Matcher:
    """A compiled pattern with the time it may take. Raises `PatternFault` for one that does not compile."""

    def __init__(self, pattern: Pattern, patience: float = PATIENCE) -> None:
        import regex

        text = pattern.text if pattern.regex else regex.escape(pattern.text, special_only=True)
        text = rf"\b(?:{text})\b" if pattern.whole_words else text
        try:
            self._compiled: Any = regex.compile(text, 0 if pattern.case_sensitive else regex.IGNORECASE)
        except (regex.error, RecursionError, OverflowError) as error:
            raise PatternFault(f"`{pattern.text[:80]}` is no regular expression: {error}") from None
        self._needle = "" if pattern.regex else pattern.text
        self._folds = not pattern.case_sensitive
        self._deadline = monotonic() + patience
        self._pattern = pattern

    def lines(self, text: str) -> Iterator[Match]:
        """The matching lines of a text. Raises `PatternFault` when the time is over."""
        if self._needle and not self._may_hold(text):
            return
        for number, line in enumerate(lines_of(text), 1):
            found = self._search(line.removesuffix("\r"))
            if found is not None:
                yield Match(number, found + 1)

    def matches(self, text: str) -> bool:
        """Whether the pattern is anywhere in a text of one line. Raises `PatternFault` when the time is over."""
        return self._search(text) is not None

    def _may_hold(self, text: str) -> bool:
        # Case folding by the regular expression knows more pairs than `lower`, all of them beyond ASCII.
        if not self._folds:
            return self._needle in text
        return not (self._needle.isascii() and text.isascii()) or self._needle.lower() in text.lower()

    def _search(self, line: str) -> int | None:
        remaining = self._deadline - monotonic()
        try:
            if remaining <= 0:
                raise TimeoutError
            found = self._compiled.search(line, timeout=remaining, concurrent=True)
        except TimeoutError:
            raise PatternFault("the search took too long: use a simpler pattern or a smaller folder") from None
        return None if found is None else found.start()


def lines_of(text: str) -> list[str]:
    """The lines of a text, as ripgrep counts them: an end of line ends one, and begins none."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


_ALIKE = re.compile(
    r"(?:[^\\()\[\]{}?*+|^$.&~-]|\\[.\\()\[\]{}?*+|^$/-]|\\[wdsb]|[.|^$]|[*+?](?![*+?])|-|\(\?:|\((?!\?)|\)"
    r"|\[\^?[A-Za-z0-9_. /,:;-]+\])*"
)


def alike(pattern: Pattern) -> bool:
    """Whether a pattern means the same to ripgrep as to us: only constructs that both read alike."""
    if not pattern.regex:
        return True
    return _ALIKE.fullmatch(pattern.text) is not None
