"""What every format shares: the shape of a format, why a rollout is left out, clean messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from json import loads
from typing import Any, TypeAlias

from runner.records.message import Message, ToolCall


class Dropped(Exception):
    """This rollout makes no row of this format. The message is a reason that can be counted."""


Tools: TypeAlias = Sequence[Mapping[str, Any]]
Format: TypeAlias = Callable[[Mapping[str, Any], Tools], dict[str, Any]]
"""A scored record and the tools it was offered (OpenAI `tools` entries) to one row. Raises `Dropped`."""


def conversation(record: Mapping[str, Any]) -> list[Message]:
    """The messages of a rollout that can be learned from. Raises `Dropped` where there is nothing to learn."""
    messages = list(record["messages"])
    if not any(message.get("role") == "assistant" for message in messages):
        raise Dropped("no assistant message")
    if messages[-1].get("role") != "assistant":
        raise Dropped("does not end with an assistant message")
    if messages[-1].get("tool_calls"):
        raise Dropped("ends with a tool call that nobody answered")
    return messages


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments of a tool call. Raises `Dropped` where they are no JSON object: a trainer would choke, or learn it.

    None at all is what some models write for a tool without parameters.
    """
    try:
        value = loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Dropped("a tool call whose arguments are no JSON object")
    return value


def kept(message: Message, keys: Sequence[str]) -> Message:
    """`message` with only these keys, and only those that hold something; an empty text is something."""
    return {key: message[key] for key in keys if message.get(key) is not None and message[key] != []}
