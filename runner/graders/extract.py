"""Where in an output the answer stands: seven ways to say it, one function to do it.

What is not found is the policy's failure, not the grader's: the score is 0 and the reason says what was looked for.
`str(extraction)` is how that reason names it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Protocol

from runner.graders.grader import GraderMisfit
from runner.graders.latex import boxed
from runner.graders.number import parse_number
from runner.graders.number_in import first_number, last_number
from runner.graders.patterns import LONG, Pattern, Take
from runner.graders.worker import Workers
from runner.records.quick import quick


class Extraction(Protocol):
    """Finds the answer in a text."""

    def extract(self, text: str) -> str | None:
        """The answer, or None when it is not there. Linear in the length of `text`, but for `Regex`."""
        ...


@dataclass(frozen=True)
class Regex:
    """What a regular expression's group matched: by default its first group, or all of it when it has none.

    Raises `GraderMisfit` for a pattern that does not compile or a group that it does not have.
    """

    pattern: str
    group: int | str | None = None
    take: Take = "last"
    ignore_case: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "compiled", Pattern(self.pattern, self.ignore_case, False, self.group, self.take))

    def extract(self, text: str) -> str | None:
        return self._pattern.find(text)

    async def extract_safely(self, text: str, workers: Workers, timeout: float) -> str | None:
        """`extract`, off the event loop when the pattern may be dear. Raises `GraderTimeout`."""
        return await self._pattern.find_safely(text, workers, timeout)

    @property
    def _pattern(self) -> Pattern:
        pattern: Pattern = self.compiled  # type: ignore[attr-defined]
        return pattern

    def __str__(self) -> str:
        return f"the pattern {self.pattern}"


@quick
class After:
    """The rest of the line after the last `marker`; the next line that is not blank, when that rest is.

    Raises `GraderMisfit` for an empty marker.
    """

    marker: str
    take: Take = "last"

    def __post_init__(self) -> None:
        if not self.marker:
            raise GraderMisfit("the marker after which to look is empty")

    def extract(self, text: str) -> str | None:
        _, found, rest = text.rpartition(self.marker) if self.take == "last" else text.partition(self.marker)
        return _first_line(rest) if found else None

    def __str__(self) -> str:
        return f"the marker {self.marker!r}"


@quick
class Tag:
    """What stands in the last complete `<name>...</name>`; case of the tag does not matter."""

    name: str
    take: Take = "last"

    def extract(self, text: str) -> str | None:
        closing = re.compile(rf"</{re.escape(self.name)}\s*>", re.IGNORECASE)
        opening = re.compile(rf"<{re.escape(self.name)}(?:\s[^<>]*)?>", re.IGNORECASE)
        ends = [found.start() for found in closing.finditer(text)]
        starts = [found.end() for found in opening.finditer(text) if ends and found.end() <= ends[-1]]
        if not starts:
            return None
        start = starts[-1 if self.take == "last" else 0]
        return text[start : next(end for end in ends if end >= start)]

    def __str__(self) -> str:
        return f"the tag <{self.name}>"


@quick
class Boxed:
    """What stands in the last complete `\\boxed{...}` or `\\fbox{...}`."""

    take: Take = "last"

    def extract(self, text: str) -> str | None:
        return boxed(text, self.take)

    def __str__(self) -> str:
        return "\\boxed{...}"


@quick
class JsonPath:
    """A value of the JSON in the output, by its `path`: `a.b.0`. Text as it is, anything else as JSON."""

    path: str

    def extract(self, text: str) -> str | None:
        try:
            value = json_in(text)
            for step in filter(None, self.path.split(".")):
                value = value[int(step)] if isinstance(value, list) else value[step]
        except (ValueError, KeyError, IndexError, TypeError):
            return None
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def __str__(self) -> str:
        return f"{self.path} in JSON"


@quick
class LastLine:
    """The last line that is not blank."""

    def extract(self, text: str) -> str | None:
        stripped = text.rstrip()
        return stripped[stripped.rfind("\n") + 1 :].strip() or None

    def __str__(self) -> str:
        return "a last line"


@quick
class Number:
    """The last number in the text, with its sign, currency and percent sign."""

    take: Take = "last"

    def extract(self, text: str) -> str | None:
        return last_number(text) if self.take == "last" else first_number(text)

    def __str__(self) -> str:
        return "a number"


@quick
class MathAnswer:
    """Where mathematicians and models put answers: the last box, what follows `####`, all of it when it is a number,
    else the last line when it is short and holds no prose, else the last number."""

    def extract(self, text: str) -> str | None:
        found = boxed(text) or After("####").extract(text)
        if found:
            return found
        whole = text.strip()
        if "\n" not in whole and len(whole) <= 200 and (parse_number(whole) or not _PROSE.search(whole)):
            return whole or None
        return last_number(text)

    def __str__(self) -> str:
        return "a box, ####, or a number"


async def extract(extraction: Extraction, text: str, workers: Workers, timeout: float) -> str | None:
    """The answer in `text`, stripped; None when it is not there or blank. Never holds the event loop up.

    Raises `GraderTimeout` when a regular expression takes longer than `timeout` seconds.
    """
    if isinstance(extraction, Regex):
        found = await extraction.extract_safely(text, workers, timeout)
    elif len(text) > LONG:
        from asyncio import to_thread

        found = await to_thread(extraction.extract, text)
    else:
        found = extraction.extract(text)
    return (found or "").strip() or None


def json_in(text: str) -> Any:
    """The JSON that a text is or holds: all of it, else its last fenced block, else its outermost braces.

    Raises ValueError when none of them is JSON. NaN and infinities are not JSON; nesting that Python's reader cannot
    follow is a ValueError, too.
    """
    error: ValueError | None = None
    for candidate in _candidates(text):
        try:
            return json.loads(candidate, parse_constant=_no_constant)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        except ValueError as found:
            error = error or found
    raise error or ValueError("it is empty")


def _candidates(text: str) -> list[str]:
    candidates = [text.strip()]
    if fences := list(_FENCE.finditer(text)):
        candidates.append(text[fences[-2].end() : fences[-1].start()] if len(fences) > 1 else text[fences[-1].end() :])
    starts = [at for at in (text.find("{"), text.find("[")) if at >= 0]
    end = max(text.rfind("}"), text.rfind("]"))
    if starts and end > min(starts):
        candidates.append(text[min(starts) : end + 1])
    return candidates


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[ \t]*[\w+-]*[ \t]*$", re.MULTILINE)
_PROSE = re.compile(r"(?<![\\A-Za-z])(?!(?:sqrt|frac|sin|cos|tan|log|exp|inf|and|or)\b)[A-Za-z]{3,}[ ,.]")


def _first_line(text: str) -> str | None:
    for line in text.lstrip().splitlines():
        return line.strip() or None
    return None
