"""Walking through an answer, past its thinking: `<think>…</think>` inside of content is never a call nor an answer.

A call is read whole before the walk goes on, so that a tag, or another call, in one of its texts is just text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from runner.workflows.parsers.parser import Fault, WrittenCall

_OPEN = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_CLOSE = re.compile(r"</think(?:ing)?>", re.IGNORECASE)

UNFINISHED = "Your thinking never ended: close it with </think>, and write your call or your answer after it."


@dataclass(slots=True)
class Found:
    """What a walk came across. `rest` is the text between the calls, `thoughts` what stood between thinking tags."""

    rest: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    parts: list[WrittenCall | Fault] = field(default_factory=list)
    answer: str | None = None
    ignored: str = ""
    unfinished: bool = False

    def forget(self, thought: str) -> None:
        """All since the last thought was thought too: keep it as such, and nothing of what was read in it."""
        self.thoughts.append(thought)
        self.rest, self.parts, self.answer, self.ignored = [], [], None, ""

    def add(self, part: WrittenCall | Fault) -> None:
        self.parts.append(part)

    @property
    def thought(self) -> str:
        return "\n".join(thought for thought in self.thoughts if thought)

    @property
    def text(self) -> str:
        return "".join(self.rest).strip()


Read: TypeAlias = Callable[[str, "re.Match[str]", Found], int]
"""Read what begins at a match into `Found`, and say where the text goes on, after the match's start."""


def walk(text: str, opener: re.Pattern[str], read: Read) -> Found:
    """Everything in `text`; `read` is called for each match of `opener` outside of thoughts and of what was read.

    Everything before a closing tag that nothing opened was thought too: some chat templates write the opening tag into
    the prompt. A thought that never ends leaves nothing after it.
    """
    found, at, since = Found(), 0, 0
    ahead = _Ahead(text, {"call": opener, "open": _OPEN, "close": _CLOSE})
    while at < len(text):
        kind, match = ahead.next(at)
        if match is None:
            found.rest.append(text[at:])
            break
        if kind == "close":
            found.forget(text[since : match.start()].strip())
            at = since = match.end()
            continue
        found.rest.append(text[at : match.start()])
        if kind == "open":
            end = _CLOSE.search(text, match.end())
            found.thoughts.append(text[match.end() : end.start() if end else len(text)].strip())
            found.unfinished = end is None
            at = since = end.end() if end else len(text)
        else:
            at = max(read(text, match, found), match.start() + 1)
    return found


def orphan_close(text: str, start: int, end: int | None = None) -> int:
    """Where in `text`, from `start`, a thought is closed that nothing opened there; `end` of the text if nowhere."""
    end = len(text) if end is None else end
    closed = _CLOSE.search(text, start, end)
    return end if closed is None or _OPEN.search(text, start, closed.start()) else closed.start()


def thinking(thought: str) -> str:
    """`thought` between tags, to stand before a text; nothing for no thought."""
    return f"<think>\n{thought}\n</think>\n\n" if thought else ""


class _Ahead:
    """The next match of each pattern, searched for once: a text may hold thousands of one and none of another."""

    def __init__(self, text: str, patterns: Mapping[str, re.Pattern[str]]) -> None:
        self._text = text
        self._patterns = patterns
        self._found: dict[str, re.Match[str] | None] = {kind: each.search(text) for kind, each in patterns.items()}

    def next(self, at: int) -> tuple[str, re.Match[str] | None]:
        """The kind and match of what comes first from `at` on."""
        for kind, match in self._found.items():
            if match is not None and match.start() < at:
                self._found[kind] = self._patterns[kind].search(self._text, at)
        there = [(match.start(), kind, match) for kind, match in self._found.items() if match is not None]
        if not there:
            return "", None
        _, kind, match = min(there, key=lambda each: each[0])
        return kind, match
