"""`TOOL_CALL: tool(a=1)`: the format of the third seed's tool agent. Any number of calls; without, it is the answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runner.records.completion import ToolSpec
from runner.records.message import ToolCall
from runner.workflows.parsers.literals import Unreadable, literal, read_call
from runner.workflows.parsers.manual import sample_arguments, signatures
from runner.workflows.parsers.parser import Fault, Parsed, WrittenCall
from runner.workflows.parsers.tagged import read_tagged
from runner.workflows.parsers.thinking import Found, thinking, walk

_MARKER = re.compile(r"TOOL_CALL:[ \t]*")


class ToolCallLines:
    """Reads `TOOL_CALL:` and the call after it."""

    stop: tuple[str, ...] = ()

    def parse(self, text: str) -> Parsed:
        return read_tagged(walk(text, _MARKER, _read))

    def render(self, parsed: Parsed) -> str:
        said = parsed.text if parsed.answer is None else parsed.answer
        return thinking(parsed.thought) + "\n".join([*([said] if said else []), *map(_written, parsed.calls)])

    def instructions(self, specs: Sequence[ToolSpec]) -> str:
        if not specs:
            return ""
        shown = _written(WrittenCall(specs[0].name, sample_arguments(specs[0])))
        return (
            f"You have these tools:\n\n{signatures(specs)}\n\nTo call one, write on a line of its own:\n\n{shown}\n\n"
            "You may call several at once. Their results come back to you. When you know the answer, write it, and "
            "call nothing beside it."
        )

    def observation(self, answers: Sequence[tuple[ToolCall, str]]) -> str:
        return "\n\n".join(f"Result of {call.name or 'the call'}:\n{content}" for call, content in answers)

    def correction(self, parsed: Parsed) -> str:
        return parsed.ignored or "Your answer is empty. Call a tool by `TOOL_CALL: tool(argument=value)`, or answer."


def _read(text: str, match: re.Match[str], found: Found) -> int:
    try:
        call, end = read_call(text, match.end())
    except Unreadable as error:
        line = text.find("\n", match.end())
        end = len(text) if line < 0 else line
        name = re.match(r"[\w.-]*", text[match.end() : end])
        found.add(Fault(str(error), text[match.start() : end].strip(), name[0] if name else ""))
        return end
    found.add(call)
    return end


def _written(call: WrittenCall) -> str:
    given = [literal(value) for value in call.positional]
    given += [f"{name}={literal(value)}" for name, value in call.arguments.items()]
    return f"TOOL_CALL: {call.name}({', '.join(given)})"
