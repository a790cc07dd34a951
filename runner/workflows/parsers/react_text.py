"""`react-text`: thoughts in words, actions as calls: `Action: search(query="a, b", limit=3)`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from runner.records.completion import ToolSpec
from runner.records.message import ToolCall
from runner.workflows.parsers.literals import NAME, Unreadable, literal, read_call
from runner.workflows.parsers.manual import sample_arguments, signatures
from runner.workflows.parsers.parser import Fault, Parsed, WrittenCall
from runner.workflows.parsers.reacting import STOP, end_of_section, observation, read_reply, rendered

_FENCE = re.compile(r"\s*(?:```[\w-]*[ \t]*\n?|`)?\s*")
_BETWEEN = re.compile(r"[ \t]*(?:`|```)?[ \t]*(?:[,;]\s*|\n\s*)")
_ALONE = re.compile(rf"\s*`?({NAME.pattern})`?\s*")


class ReactText:
    """Reads `Thought:`, `Action: tool(a=1)` and `Final Answer:`, each at the start of a line."""

    stop = STOP

    def parse(self, text: str) -> Parsed:
        return read_reply(text, _read_action)

    def render(self, parsed: Parsed) -> str:
        return rendered(parsed, _written)

    def instructions(self, specs: Sequence[ToolSpec]) -> str:
        example = next((WrittenCall(spec.name, sample_arguments(spec)) for spec in specs), None)
        shown = _written(example) if example is not None else "tool_name(argument=1)"
        return f"""You have these tools:

{signatures(specs)}

Work in turns. In each turn, think, then take one action and stop:

Thought: what you know, and what to find out next
Action: {shown}

The result comes back as an Observation. When you know the answer, write instead:

Thought: why it is the answer
Final Answer: the answer, and nothing else

Put texts in double quotes, with \\" for a quote and \\n for a new line in them; write numbers, true, false, null, \
[lists] and {{"objects": 1}} as in JSON. Never write an Observation yourself."""

    def observation(self, answers: Sequence[tuple[ToolCall, str]]) -> str:
        return observation(answers)

    def correction(self, parsed: Parsed) -> str:
        return (
            parsed.ignored
            or "Your answer holds neither an action nor a final answer. Write one of them on a line of "
            "its own: `Action: tool_name(argument=value)` to use a tool, or `Final Answer: the answer`."
        )


def _read_action(text: str, start: int) -> tuple[list[WrittenCall | Fault], int]:
    end = end_of_section(text, start)
    at = _FENCE.match(text, start).end()  # type: ignore[union-attr]  # it matches nothing at least
    alone = _ALONE.fullmatch(text, start, end)
    if alone is not None:
        return [WrittenCall(alone[1])], end
    parts: list[WrittenCall | Fault] = []
    while True:
        try:
            call, at = read_call(text, at)
        except Unreadable as error:
            parts.append(_fault(str(error), text[start:end].strip()))
            return parts, end
        parts.append(call)
        end = end_of_section(text, at)  # a marker inside of its texts was none
        between = _BETWEEN.match(text, at)
        if between is None or not _begins_call(text, between.end()):
            return parts, end
        at = between.end()


def _begins_call(text: str, at: int) -> bool:
    name = NAME.match(text, at)
    return name is not None and text[name.end() : name.end() + 1] == "("


def _fault(problem: str, text: str) -> Fault:
    name = NAME.match(text.strip("` \n"))
    return Fault(problem, text, name[0] if name else "")


def _written(call: WrittenCall) -> str:
    given = [literal(value) for value in call.positional]
    given += [f"{name}={literal(value)}" for name, value in call.arguments.items()]
    return f"{call.name}({', '.join(given)})"
