"""What `react-text` and `react-json` share: the markers that begin a line, and what stands between them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeAlias

from runner.records.message import ToolCall
from runner.workflows.parsers.parser import Fault, Parsed, WrittenCall
from runner.workflows.parsers.thinking import UNFINISHED, Found, orphan_close, walk

STOP = ("\nObservation:",)
INVENTED = "What you wrote after `Observation:` was not read: results come from the tools."
TOO_EARLY = "The final answer beside your call was not read: answer when you have seen its result."

_WORD = r"(?P<word>Thought|Action|Final Answer|Observation)"
_START = r"(?:^|(?<=</think>)|(?<=</thinking>))[ \t]*"
MARKER = re.compile(rf"{_START}(?P<bold>\*\*)?{_WORD}(?: \d+)?(?(bold)(?::\*\*|\*\*:)|[ \t]*:)", re.I | re.M)
_FINAL = re.compile(r"\s*(?:\*\*)?Final Answer(?:\*\*)?\s*(?::(?:\*\*)?|$|\n)", re.I)

ReadAction: TypeAlias = Callable[[str, int], tuple[list[WrittenCall | Fault], int]]
"""The calls of an action whose text begins at a place, and where the text goes on."""


def read_reply(text: str, read_action: ReadAction) -> Parsed:
    """An answer of thoughts, actions and a final answer."""

    def read(text: str, marker: re.Match[str], found: Found) -> int:
        word = marker["word"].lower()
        final = marker.end() if word == "final answer" else _final_action(text, marker.end()) if word == "action" else 0
        if final:
            return _answer(text, final, found)
        if word == "action":
            parts, end = read_action(text, marker.end())
            found.parts += parts
            return end
        if word == "observation" and found.parts:
            end = orphan_close(text, marker.end())
            found.ignored = INVENTED if text[marker.end() : end].strip() else ""
            return end
        return marker.end()  # what follows is thought

    found = walk(text, MARKER, read)
    if found.unfinished and not found.parts and found.answer is None:
        return Parsed(found.thought, ignored=UNFINISHED)
    thought = "\n".join(each for each in (found.thought, "\n".join(_lines(found.rest))) if each)
    if found.parts:
        ignored = TOO_EARLY if found.answer is not None else found.ignored
        return Parsed(thought, parts=tuple(found.parts), ignored=ignored)
    return Parsed(thought, answer=found.answer)


def end_of_section(text: str, start: int) -> int:
    """Where the next marker begins, or a thought is closed; the end of the text if nowhere."""
    marker = MARKER.search(text, start)
    return orphan_close(text, start, len(text) if marker is None else marker.start())


def observation(answers: Sequence[tuple[ToolCall, str]]) -> str:
    """One `Observation:` for each call, with its number where there are several."""
    if len(answers) == 1:
        return f"Observation: {answers[0][1]}"
    return "\n\n".join(
        f"Observation {number} ({call.name or 'no tool'}): {content}"
        for number, (call, content) in enumerate(answers, 1)
    )


def rendered(parsed: Parsed, action: Callable[[WrittenCall], str]) -> str:
    """The text of a reply, with each call as `action` writes it."""
    lines = [f"Thought: {parsed.thought}"] if parsed.thought else []
    lines += [f"Action: {action(call)}" for call in parsed.calls]
    if parsed.answer is not None:
        lines.append(f"Final Answer: {parsed.answer}")
    return "\n".join(lines)


def _final_action(text: str, start: int) -> int:
    """Where the answer begins of an action that is `Final Answer: …`; 0 for any other action."""
    found = _FINAL.match(text, start)
    return found.end() if found is not None else 0


def _answer(text: str, start: int, found: Found) -> int:
    end = orphan_close(text, start)
    found.answer = text[start:end].strip()
    return end


def _lines(rest: Sequence[str]) -> list[str]:
    return [piece.strip() for piece in rest if piece.strip()]
