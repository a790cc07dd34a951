"""Small questions about one message or many."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def parse_tool_calls(message: Mapping[str, Any]) -> list[Any]:
    """The tool calls of an assistant message; none where they are missing, null, or no list."""
    calls = message.get("tool_calls")
    return calls if isinstance(calls, list) else []


def normalize_stop(stop: Any) -> list[str] | None:
    """Stop texts as a list: a text alone, a list or tuple of them; None for anything else."""
    if isinstance(stop, str):
        return [stop]
    return [str(each) for each in stop] if isinstance(stop, list | tuple) else None


def get_message_content(message: Mapping[str, Any]) -> str:
    """The content if it is text, else nothing."""
    content = message.get("content")
    return content if isinstance(content, str) else ""


def get_message_role(message: Mapping[str, Any]) -> str:
    """The role; "unknown" without one."""
    return str(message.get("role", "unknown"))


def is_assistant_message(message: Mapping[str, Any]) -> bool:
    """Whether the model said it."""
    return get_message_role(message) == "assistant"


def is_tool_message(message: Mapping[str, Any]) -> bool:
    """Whether it answers a tool call."""
    return get_message_role(message) == "tool"


def is_user_message(message: Mapping[str, Any]) -> bool:
    """Whether the user said it."""
    return get_message_role(message) == "user"


def count_messages_by_role(messages: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """How many messages each role has."""
    counts: dict[str, int] = {}
    for message in messages:
        role = get_message_role(message)
        counts[role] = counts.get(role, 0) + 1
    return counts
