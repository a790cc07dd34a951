"""`react-json`: thoughts in words, actions as JSON: `Action: {"name": "search", "parameters": {"query": "x"}}`.

JSON in a fence, JSON without a marker, and `Action: search` with `Action Input: {…}` are read as well: models trained
on one of these write it whatever they are told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from runner.records.completion import ToolSpec
from runner.records.message import ToolCall
from runner.workflows.parsers.json_calls import ARGUMENTS, NAMES, calls_in, read_json
from runner.workflows.parsers.literals import NAME
from runner.workflows.parsers.manual import sample_arguments, signatures
from runner.workflows.parsers.parser import Fault, Parsed, WrittenCall
from runner.workflows.parsers.reacting import MARKER, STOP, end_of_section, observation, read_reply, rendered
from runner.workflows.parsers.thinking import Found, walk

_FENCE = re.compile(r"\s*(?:```[\w-]*[ \t]*\n?)?\s*")
_NAMED = re.compile(
    rf"\s*`?({NAME.pattern})`?[ \t]*\n\s*(?:\*\*)?Action Input(?:\*\*)?[ \t]*:(?:\*\*)?\s*(?:```\w*\s*)?", re.I
)
_ALONE = re.compile(rf"\s*`?({NAME.pattern})`?\s*")
_UNMARKED = re.compile(r"^[ \t]*(?:```(?:json|tool_code|tool_call)?[ \t]*\n\s*)?(?=[\[{])", re.M)
_NAME_IN = re.compile(r'"(?:name|tool_name|tool|action)"\s*:\s*"([^"]+)"')
_AGAIN = re.compile(r"\s*(?:```)?\s*(?:,|```\w*)?\s*(?=\{)")


class ReactJson:
    """Reads `Thought:`, `Action: {"name": …, "parameters": {…}}` and `Final Answer:`."""

    stop = STOP

    def parse(self, text: str) -> Parsed:
        parsed = read_reply(text, _read_action)
        if not parsed.parts and parsed.answer is None and not parsed.ignored:
            parsed = _unmarked(text) or parsed
        return _with_final(parsed)

    def render(self, parsed: Parsed) -> str:
        return rendered(parsed, _written)

    def instructions(self, specs: Sequence[ToolSpec]) -> str:
        example = next((WrittenCall(spec.name, sample_arguments(spec)) for spec in specs), None)
        shown = _written(example or WrittenCall("tool_name", {"argument": 1}))
        return f"""You have these tools:

{signatures(specs)}

Work in turns. In each turn, think, then take one action and stop:

Thought: what you know, and what to find out next
Action: {shown}

The result comes back as an Observation. When you know the answer, write instead:

Thought: why it is the answer
Final Answer: the answer, and nothing else

An action is one JSON object with "name" and "parameters". Never write an Observation yourself."""

    def observation(self, answers: Sequence[tuple[ToolCall, str]]) -> str:
        return observation(answers)

    def correction(self, parsed: Parsed) -> str:
        return (
            parsed.ignored
            or "Your answer holds neither an action nor a final answer. Write one of them on a line of "
            'its own: `Action: {"name": "tool_name", "parameters": {}}` to use a tool, or `Final Answer: the answer`.'
        )


def _read_action(text: str, start: int) -> tuple[list[WrittenCall | Fault], int]:
    section = end_of_section(text, start)
    named = _NAMED.match(text, start)
    if named is not None:
        return _input_of(text, named, section)
    alone = _ALONE.fullmatch(text, start, section)
    if alone is not None:
        return [WrittenCall(alone[1])], section
    return _read_values(text, start, _FENCE.match(text, start).end(), section)  # type: ignore[union-attr]


def _read_values(text: str, start: int, at: int, section: int) -> tuple[list[WrittenCall | Fault], int]:
    parts: list[WrittenCall | Fault] = []
    while True:
        try:
            value, end = read_json(text, at)
        except ValueError as error:
            said = text[start:section].strip()
            name = _NAME_IN.search(said)
            return [*parts, Fault(str(error), said, name[1] if name else "")], max(section, at)
        parts += calls_in(value, text[at:end])
        again = _AGAIN.match(text, end)
        if again is None:
            return parts, end_of_section(text, end)
        at = again.end()


def _input_of(text: str, named: re.Match[str], section: int) -> tuple[list[WrittenCall | Fault], int]:
    name = named[1]
    given = text[named.end() : section].strip()
    if given[:1] not in ("{", "["):
        return [WrittenCall(name, positional=(given.strip('"`'),)) if given else WrittenCall(name)], section
    try:
        value, end = read_json(text, named.end())
    except ValueError as error:
        return [Fault(str(error), text[named.start() : section].strip(), name)], section
    call = WrittenCall(name, value) if isinstance(value, dict) else WrittenCall(name, positional=(value,))
    return [call], end_of_section(text, end)


def _unmarked(text: str) -> Parsed | None:
    """A call that stands alone, without a marker; None where there is none."""

    def read(text: str, match: re.Match[str], found: Found) -> int:
        try:
            value, end = read_json(text, match.end())
        except ValueError as error:
            name = _NAME_IN.search(text, match.end())
            if name is not None:
                found.add(Fault(str(error), text[match.end() :].strip(), name[1]))
            return len(text)
        if _is_call(value):
            found.parts += calls_in(value, text[match.end() : end])
        return end

    found = walk(text, _UNMARKED, read)
    if not found.parts:
        return None
    said = MARKER.sub("", found.text).strip("` \n")
    return Parsed("\n".join(each for each in (found.thought, said) if each), parts=tuple(found.parts))


def _is_call(value: object) -> bool:
    if isinstance(value, list):
        return bool(value) and all(_is_call(each) for each in value)
    return isinstance(value, dict) and any(key in value for key in NAMES) and any(key in value for key in ARGUMENTS)


def _with_final(parsed: Parsed) -> Parsed:
    """An action that is called `Final Answer` is one, as LangChain's models write it."""
    if len(parsed.parts) != 1 or not isinstance(parsed.parts[0], WrittenCall):
        return parsed
    call = parsed.parts[0]
    if call.name.strip().lower() != "final answer":
        return parsed
    values = [*call.arguments.values(), *call.positional]
    said = values[0] if len(values) == 1 else dict(call.arguments)
    return Parsed(parsed.thought, answer=said if isinstance(said, str) else json.dumps(said, ensure_ascii=False))


def _written(call: WrittenCall) -> str:
    return json.dumps({"name": call.name, "parameters": dict(call.arguments)}, ensure_ascii=False)
