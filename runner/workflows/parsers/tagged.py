"""What `hermes` and `xml-function` share: an answer without a call is the final one, results come between tags."""

from __future__ import annotations

from collections.abc import Sequence

from runner.records.message import ToolCall
from runner.workflows.parsers.parser import Parsed
from runner.workflows.parsers.thinking import UNFINISHED, Found


def read_tagged(found: Found) -> Parsed:
    """A walk as an answer."""
    if found.parts:
        return Parsed(found.thought, found.text, tuple(found.parts))
    if found.unfinished:
        return Parsed(found.thought, ignored=UNFINISHED)
    return Parsed(found.thought, answer=found.text)


def observation(answers: Sequence[tuple[ToolCall, str]]) -> str:
    """Each result between `<tool_response>` tags, as the models' own templates have it."""
    return "\n".join(f"<tool_response>\n{content}\n</tool_response>" for _, content in answers)
