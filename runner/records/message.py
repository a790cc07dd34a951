"""Messages in the OpenAI chat form, and the few questions everybody asks of them.

A message stays the plain dictionary that goes over the wire: what an endpoint gave is kept as it gave it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]
"""One chat message: `role`, `content`, and for some roles `tool_calls`, `tool_call_id`, `name`."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One request of the model to use a tool.

    `arguments` is the raw JSON text as the model wrote it: it may be malformed. `as_text`: the model wrote the call
    into the text of its answer, no `tool_calls` of a message holds it. `fault` is what is wrong with such a text, in a
    sentence to the model: whoever runs the call answers with it, and runs nothing.
    """

    id: str
    name: str
    arguments: str
    as_text: bool = False
    fault: str = ""


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a message's content: a string as it is, text parts joined, nothing for other parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, Sequence):
        return "".join(_part_text(part) for part in content)
    return ""


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        text: str = part["text"]
        return text
    return ""


def tool_calls_of(message: Mapping[str, Any]) -> list[ToolCall]:
    """The tool calls of an assistant message, tolerant of missing parts; arguments stay text."""
    calls = message.get("tool_calls")
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        return []
    return [_tool_call(call) for call in calls if isinstance(call, Mapping)]


def _tool_call(call: Mapping[str, Any]) -> ToolCall:
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    arguments = function.get("arguments")
    return ToolCall(
        id=str(call.get("id") or ""),
        name=str(function.get("name") or ""),
        arguments=arguments if isinstance(arguments, str) else _as_json(arguments),
    )


def _as_json(value: Any) -> str:
    from json import dumps

    return "" if value is None else dumps(value, ensure_ascii=False)


def last_answer(messages: Iterable[Mapping[str, Any]]) -> str:
    """The text of the last assistant message: what graders read as the output. Empty if there is none."""
    answer = ""
    for message in messages:
        if message.get("role") == "assistant":
            answer = text_of(message)
    return answer
