"""`xml-function`: `<function=NAME><parameter=K>V</parameter></function>`, as R2E and Qwen3-Coder write it.

Values are texts as they stand, less the line end at each side of one that begins on a line of its own; what they mean
follows from the tool's schema. A value may hold anything, tags too: its end is the `</parameter>` after which another
parameter, or the end, comes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from runner.records.completion import ToolSpec
from runner.records.message import ToolCall
from runner.workflows.parsers.manual import as_json
from runner.workflows.parsers.parser import Fault, Parsed, WrittenCall
from runner.workflows.parsers.tagged import observation, read_tagged, rendered
from runner.workflows.parsers.thinking import Found, orphan_close, walk

_OPENER = re.compile(r"<tool_call>|</tool_call>|</?function(?:=\s*(?P<name>[^>\s]*)\s*)?>", re.I)
_PARAMETER = re.compile(r"\s*<parameter=\s*([^>\s]+)\s*>", re.I)
_END = re.compile(r"\s*(?:</function>|\Z|(?=</tool_call>))", re.I)
_VALUE_END = re.compile(r"</parameter>(?=\s*(?:<parameter=|</function>|</tool_call>|\Z))", re.I)


class XmlFunction:
    """Reads `<function=NAME>` blocks; everything else is text."""

    stop: tuple[str, ...] = ()

    def parse(self, text: str) -> Parsed:
        return read_tagged(walk(text, _OPENER, _read))

    def render(self, parsed: Parsed) -> str:
        return rendered(parsed, _written)

    def instructions(self, specs: Sequence[ToolSpec]) -> str:
        return f"""# Tools

You have access to the following functions:

<tools>
{as_json(specs)}
</tools>

If you choose to call a function, reply in the following format with nothing after it:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
</tool_call>

You may write your reasoning before the call, not after it. Values are not quoted or escaped. Without a call, your \
reply is your final answer."""

    def observation(self, answers: Sequence[tuple[ToolCall, str]]) -> str:
        return observation(answers)

    def correction(self, parsed: Parsed) -> str:
        return parsed.ignored or (
            "Write your answer, or your call as text:\n"
            "<function=tool_name>\n<parameter=name>\nvalue\n</parameter>\n</function>"
        )


def _read(text: str, tag: re.Match[str], found: Found) -> int:
    said = tag[0].lower()
    if said == "<tool_call>":
        return _opened(text, tag, found)
    if said == "</tool_call>":
        return tag.end()
    name = tag["name"]
    if not name:
        found.add(Fault(f"{tag[0]} names no function: write <function=NAME>.", tag[0]))
        return tag.end()
    arguments: dict[str, Any] = {}
    at = tag.end()
    while (parameter := _PARAMETER.match(text, at)) is not None:
        end = _VALUE_END.search(text, parameter.end())
        if end is None:
            return _broken(text, tag, f"<parameter={parameter[1]}> is never closed by </parameter>.", found)
        if parameter[1] in arguments:
            return _broken(text, tag, f"<parameter={parameter[1]}> is given twice.", found)
        arguments[parameter[1]] = _value(text[parameter.end() : end.start()])
        at = end.end()
    end = _END.match(text, at)
    if end is None:
        there = text[at:].strip()[:30]
        return _broken(text, tag, f"Expected <parameter=…> or </function> in the call, found {there!r}.", found)
    found.add(WrittenCall(name, arguments))
    return end.end()


def _opened(text: str, tag: re.Match[str], found: Found) -> int:
    """The tag around a call; a fault when there is no call in it."""
    if re.match(r"\s*<function", text[tag.end() :], re.I):
        return tag.end()
    return _broken(text, tag, "<tool_call> holds no <function=NAME>.", found)


def _broken(text: str, tag: re.Match[str], problem: str, found: Found) -> int:
    closing = re.compile(r"</function>|</tool_call>", re.I).search(text, tag.end())
    end = orphan_close(text, tag.end(), closing.end() if closing else len(text))
    found.add(Fault(problem, text[tag.start() : end], tag["name"] or ""))
    return end


def _value(text: str) -> str:
    """The text without the line end at each side that sets it off from its tags, if there is one."""
    for end in ("\r\n", "\n"):
        if text.startswith(end):
            return text.removeprefix(end).removesuffix(end)
    return text


def _written(call: WrittenCall) -> str:
    parameters = [
        f"<parameter={name}>\n{value if isinstance(value, str) else json.dumps(value)}\n</parameter>"
        for name, value in call.arguments.items()
    ]
    return "\n".join([f"<function={call.name}>", *parameters, "</function>"])
