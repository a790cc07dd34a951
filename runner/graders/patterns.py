"""Regular expressions somebody wrote, run where they cannot stop the event loop.

Python's `re` backtracks and holds the interpreter while it does, so a pattern that could be dear on a text of that
length runs in a worker process that can be killed; the others, nearly all, run here at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

from runner.graders.grader import GraderMisfit
from runner.graders.worker import Workers
from runner.graders.worker_main import find

Take: TypeAlias = Literal["first", "last"]

LONG = 20_000
"""Characters from which every pattern runs in a worker process."""
STEPS = 20_000_000
"""Worst-case steps of the matcher that may run on the event loop: about a fifth of a second."""


@dataclass(frozen=True)
class Pattern:
    """A compiled regular expression. Raises `GraderMisfit` when it does not compile.

    `full` asks that the whole text match. `group` is a number or a name; None is the first group if there is one,
    else the whole match.
    """

    text: str
    ignore_case: bool = False
    full: bool = False
    group: int | str | None = None
    take: Take = "last"

    def __post_init__(self) -> None:
        try:
            groups = self.compiled.groups, self.compiled.groupindex
        except (re.error, RecursionError, OverflowError) as error:
            raise GraderMisfit(f"the pattern {self.text!r} does not compile: {error}") from error
        if isinstance(self.group, str) and self.group not in groups[1]:
            known = ", ".join(groups[1]) or "it has no named group"
            raise GraderMisfit(f"the pattern {self.text!r} has no group {self.group!r}; known: {known}")
        if isinstance(self.group, int) and not 0 <= self.group <= groups[0]:
            raise GraderMisfit(f"the pattern {self.text!r} has {groups[0]} groups, found group = {self.group}")

    @property
    def flags(self) -> int:
        return int(re.IGNORECASE) if self.ignore_case else 0

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        return re.compile(self.text, self.flags)

    def is_dear(self, text: str) -> bool:
        """Whether to keep this pattern and this text off the event loop."""
        return len(text) > LONG or _worst_case(self._parsed, len(text)) > STEPS

    @cached_property
    def _parsed(self) -> list[Any] | None:
        try:
            from re import _parser  # type: ignore[attr-defined]

            return list(_parser.parse(self.text, self.flags))
        except (ImportError, AttributeError):  # a private module: without it, nothing is known to be cheap
            return None

    def find(self, text: str) -> str | None:
        """The wanted group of the wanted match, here and now. None when there is no match or it took no part."""
        return find(self.compiled, text, self.full, self.group, self.take)

    async def find_safely(self, text: str, workers: Workers, timeout: float) -> str | None:
        """`find`, in a worker when it may be dear. Raises `GraderTimeout` when that takes over `timeout` seconds."""
        if not self.is_dear(text):
            return self.find(text)
        request = {"pattern": self.text, "flags": self.flags, "text": text}
        request |= {"full": self.full, "group": self.group, "take": self.take}
        answer = await workers.ask("find", request, timeout)
        found: str | None = answer["found"]
        return found


def _worst_case(parsed: list[Any] | None, length: int) -> float:
    """How many ways a backtracking matcher may have to try on a text of `length` characters."""
    if parsed is None:
        return math.inf
    starts = 1 if _starts_fixed(parsed) else length
    return starts * _ways(parsed, length)


def _starts_fixed(items: list[Any]) -> bool:
    """Whether few places of a text can begin a match: two literal characters, or the text's own beginning."""
    names = [str(item[0]) for item in items[:2]]
    return names[:1] == ["AT"] or names == ["LITERAL", "LITERAL"]


def _ways(items: Iterable[Any], length: int) -> float:
    ways = 1.0
    for name, value in items:
        ways *= _item_ways(str(name), value, length)
    return ways


def _item_ways(name: str, value: Any, length: int) -> float:
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, inner = value
        times, within = min(int(most), length), _ways(inner, length)
        # A body with a choice of its own makes every round of the loop a choice: exponential in the rounds.
        return (max(times - int(least), 0) + 1) * (within ** min(times, 64) if within > 1 else 1.0)
    if name == "BRANCH":
        return sum(_ways(branch, length) for branch in value[1])
    if name == "SUBPATTERN":
        return _ways(value[3], length)
    if name in ("ASSERT", "ASSERT_NOT"):
        return _ways(value[1], length)
    if name == "ATOMIC_GROUP":
        return _ways(value, length)
    return math.inf if name.startswith("GROUPREF") else 1.0
