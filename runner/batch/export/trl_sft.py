"""`trl-sft`: TRL and Hugging Face chat templates. Tool-call arguments are objects, tool messages carry a name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.batch.export.row import Tools, arguments_of, conversation, kept
from runner.records.message import Message, tool_calls_of


def row(record: Mapping[str, Any], tools: Tools) -> dict[str, Any]:
    """`{messages, tools?}`. Raises `Dropped`, also for a tool call whose arguments are no JSON object."""
    names: dict[str, str] = {}
    made: dict[str, Any] = {"messages": [_message(message, names) for message in conversation(record)]}
    if tools:
        made["tools"] = [dict(tool) for tool in tools]
    return made


def _message(message: Message, names: dict[str, str]) -> Message:
    """`names` collects the tool of each call id, for the tool messages that follow."""
    if message.get("role") == "tool":
        name = message.get("name") or names.get(str(message.get("tool_call_id")))
        return {"role": "tool", **({"name": name} if name else {}), "content": message.get("content") or ""}
    made = kept(message, ("role", "content"))
    if message.get("role") == "assistant" and (calls := tool_calls_of(message)):
        names.update((call.id, call.name) for call in calls)
        made["tool_calls"] = [
            {"type": "function", "function": {"name": call.name, "arguments": arguments_of(call)}} for call in calls
        ]
        if not made.get("content"):
            made.pop("content", None)
    return made
