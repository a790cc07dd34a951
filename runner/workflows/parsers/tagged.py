"""What `hermes` and `xml-function` share: an answer without a call is the final one, results come between tags."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from runner.records.message import ToolCall
from runner.workflows.parsers.parser import Parsed, WrittenCall
from runner.workflows.parsers.thinking import UNFINISHED, Found, thinking


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


def rendered(parsed: Parsed, written: Callable[[WrittenCall], str]) -> str:
    """The reply that says this: thought, text, and each call between its tags."""
    calls = [f"<tool_call>\n{written(call)}\n</tool_call>" for call in parsed.calls]
    said = parsed.text if parsed.answer is None else parsed.answer
    return thinking(parsed.thought) + "\n".join([said, *calls] if said else calls)
