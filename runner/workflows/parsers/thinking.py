"""Walking through an answer, past its thinking: `<think>…</think>` inside of content is never a call nor an answer.

A call is read whole before the walk goes on, so that a tag, or another call, in one of its texts is just text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
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
    found, at = Found(), 0
    while at < len(text):
        kind, match = _next(text, at, opener)
        if match is None:
            found.rest.append(text[at:])
            break
        if kind == "close":
            thoughts = [*found.thoughts, text[_after_thoughts(text, match.start()) : match.start()].strip()]
            found, at = Found(thoughts=thoughts), match.end()
            continue
        found.rest.append(text[at : match.start()])
        if kind == "open":
            end = _CLOSE.search(text, match.end())
            found.thoughts.append(text[match.end() : end.start() if end else len(text)].strip())
            found.unfinished = end is None
            at = end.end() if end else len(text)
        else:
            at = max(read(text, match, found), match.start() + 1)
    return found


def orphan_close(text: str, start: int) -> int:
    """Where in `text`, from `start`, a thought is closed that nothing opened there; the end of the text if nowhere."""
    closed, opened = _CLOSE.search(text, start), _OPEN.search(text, start)
    return closed.start() if closed and not (opened and opened.start() < closed.start()) else len(text)


def thinking(thought: str) -> str:
    """`thought` between tags, to stand before a text; nothing for no thought."""
    return f"<think>\n{thought}\n</think>\n\n" if thought else ""


def _next(text: str, at: int, opener: re.Pattern[str]) -> tuple[str, re.Match[str] | None]:
    candidates = [
        ("call", opener.search(text, at)),
        ("open", _OPEN.search(text, at)),
        ("close", _CLOSE.search(text, at)),
    ]
    there = [(match.start(), kind, match) for kind, match in candidates if match is not None]
    if not there:
        return "", None
    _, kind, match = min(there, key=lambda each: each[0])
    return kind, match


def _after_thoughts(text: str, end: int) -> int:
    """Where the thought began that ends at `end` without having been opened: after the last one that ended before."""
    last = 0
    for match in _CLOSE.finditer(text, 0, end):
        last = match.end()
    return last
