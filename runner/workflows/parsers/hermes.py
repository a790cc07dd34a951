"""`hermes`: `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, as Hermes and Qwen were trained.

An answer without a call is the final answer. The words of the instructions are those of the models' own templates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from runner.records.completion import ToolSpec
from runner.records.message import ToolCall
from runner.workflows.parsers.json_calls import calls_in, read_json
from runner.workflows.parsers.manual import as_json
from runner.workflows.parsers.parser import Fault, Parsed, WrittenCall
from runner.workflows.parsers.tagged import observation, read_tagged, rendered
from runner.workflows.parsers.thinking import Found, orphan_close, walk

_TAG = re.compile(r"</?tool_call>", re.I)
_FENCE = re.compile(r"\s*(?:```[\w-]*\s*)?")
_END = re.compile(r"\s*(?:```)?\s*(?:</tool_call>|(?=<tool_call>)|\Z)", re.I)


class Hermes:
    """Reads calls between `<tool_call>` tags; everything else is text."""

    stop: tuple[str, ...] = ()

    def parse(self, text: str) -> Parsed:
        return read_tagged(walk(text, _TAG, _read))

    def render(self, parsed: Parsed) -> str:
        return rendered(parsed, _written)

    def instructions(self, specs: Sequence[ToolSpec]) -> str:
        return f"""# Tools

You may call one or more functions to assist with the user query.

You are provided with function signatures within <tools></tools> XML tags:
<tools>
{as_json(specs)}
</tools>

For each function call, return a json object with function name and arguments within <tool_call></tool_call> XML tags:
<tool_call>
{{"name": <function-name>, "arguments": <args-json-object>}}
</tool_call>"""

    def observation(self, answers: Sequence[tuple[ToolCall, str]]) -> str:
        return observation(answers)

    def correction(self, parsed: Parsed) -> str:
        return parsed.ignored or (
            "Write your answer, or your call as text:\n"
            '<tool_call>\n{"name": "tool_name", "arguments": {}}\n</tool_call>'
        )


def _read(text: str, tag: re.Match[str], found: Found) -> int:
    if tag[0].startswith("</"):
        found.add(Fault("A </tool_call> closes nothing.", tag[0]))
        return tag.end()
    start = _FENCE.match(text, tag.end()).end()  # type: ignore[union-attr]  # it matches nothing at least
    try:
        value, at = read_json(text, start)
        parts = calls_in(value, text[start:at])
        end = _END.match(text, at)
        while end is None and text[at:].lstrip()[:1] == "{":  # several objects in one pair of tags
            value, at = read_json(text, at)
            parts += calls_in(value, "")
            end = _END.match(text, at)
    except ValueError as error:
        return _broken(text, tag, str(error), found)
    if end is None:
        found_there = text[at:].strip()[:20]
        return _broken(
            text, tag, f"After the JSON of the call, </tool_call> must follow, found {found_there!r}.", found
        )
    found.parts += parts
    return end.end()


def _broken(text: str, tag: re.Match[str], problem: str, found: Found) -> int:
    """A fault from the tag to the end of what it was meant to hold."""
    following = _TAG.search(text, tag.end())
    end = orphan_close(text, tag.end(), following.start() if following else len(text))
    said = text[tag.end() : end].strip()
    name = re.search(r'"name"\s*:\s*"([^"]+)"', said)
    found.add(Fault(problem, said, name[1] if name else ""))
    return following.end() if following and following.start() == end and following[0].startswith("</") else end


def _written(call: WrittenCall) -> str:
    return json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=False)
