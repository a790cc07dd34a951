"""`openai-sft`: OpenAI fine-tuning (also Azure, Fireworks, Together). Tool-call arguments are JSON text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.batch.export.row import Tools, arguments_of, conversation, kept
from runner.records.message import Message, ToolCall, tool_calls_of


def row(record: Mapping[str, Any], tools: Tools) -> dict[str, Any]:
    """`{messages, tools?, parallel_tool_calls?}`. Raises `Dropped`, also for arguments that are no JSON object."""
    messages = conversation(record)
    made: dict[str, Any] = {"messages": [_message(message) for message in messages]}
    if tools:
        made["tools"] = [dict(tool) for tool in tools]
        made["parallel_tool_calls"] = any(len(message.get("tool_calls") or ()) > 1 for message in messages)
    return made


def _message(message: Message) -> Message:
    made = kept(message, ("role", "content", "name", "tool_call_id"))
    if message.get("role") == "assistant" and (calls := tool_calls_of(message)):
        made["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": _text(call)}}
            for call in calls
        ]
        if not made.get("content"):
            made.pop("content", None)
    return made


def _text(call: ToolCall) -> str:
    """The arguments as the model wrote them, byte for byte."""
    arguments_of(call)
    return call.arguments or "{}"
