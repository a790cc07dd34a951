"""`Trouble`: where and how the reading of a TOML text ended, for the explanations to look at."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from runner.diag.diagnostic import Diagnostic, Fix, Place, Source
from runner.diag.span import Spans, walk


@dataclass(frozen=True)
class Trouble:
    """A text that is not TOML: `what` the parser said and the offset `at` which it stopped."""

    source: Source
    what: str
    at: int

    @property
    def text(self) -> str:
        return self.source.text

    @cached_property
    def spans(self) -> Spans:
        """What the walker saw before the stopping place: brackets open there, the string it is in."""
        return walk(self.text[: self.at])

    @cached_property
    def line_start(self) -> int:
        return self.text.rfind("\n", 0, self.at) + 1

    @cached_property
    def line_end(self) -> int:
        """The end of the line in which the parser stopped, line end and trailing blanks left out."""
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        return self.line_start + len(self.text[self.line_start : end].rstrip(" \t\r"))

    @property
    def rest(self) -> str:
        """What stands on that line from the stopping place on."""
        return self.text[self.at : self.line_end]

    def finding(self, message: str, start: int, end: int, label: str = "", **more: str | None) -> Diagnostic:
        """A `syntax` finding; `put` is the text that repairs `start:end`, `help` and `note` are a sentence each."""
        place = Place(self.source, start, min(end, len(self.text)))
        put, advice, note = more.get("put"), more.get("help"), more.get("note")
        helps, notes = (advice,) if advice else (), (note,) if note else ()
        return Diagnostic("syntax", message, place, label, helps, notes, fix=None if put is None else Fix(place, put))
