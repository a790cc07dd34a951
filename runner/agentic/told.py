"""Results of written calls, taken out of the one message that brought them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runner.records.message import ToolCall

_TAGGED = re.compile(r"<tool_response>\n(.*?)\n</tool_response>(?=\n<tool_response>|\s*$|\n\n\()", re.S)


def contents_of(text: str, calls: Sequence[ToolCall]) -> list[str]:
    """What each call gave, in their order. Of a format that nobody knows, the whole text is the first one's."""
    tagged = _TAGGED.findall(text)
    if len(tagged) == len(calls):
        return list(tagged)
    for heads in (_observations(calls), [f"Result of {call.name or 'the call'}:\n" for call in calls]):
        found = _between(text, heads)
        if found is not None:
            return found
    return [text, *[""] * (len(calls) - 1)]


def _observations(calls: Sequence[ToolCall]) -> list[str]:
    if len(calls) == 1:
        return ["Observation: "]
    return [f"Observation {number} ({call.name or 'no tool'}): " for number, call in enumerate(calls, 1)]


def _between(text: str, heads: Sequence[str]) -> list[str] | None:
    """The texts after each head; None where one of them is missing."""
    if not text.startswith(heads[0]):
        return None
    found, at = [], len(heads[0])
    for head in heads[1:]:
        end = text.find(f"\n\n{head}", at)
        if end < 0:
            return None
        found.append(text[at:end])
        at = end + 2 + len(head)
    return [*found, text[at:]]
