"""`Conversation`: what went over the wire, so that it goes over the wire again as it was.

Strands keeps a conversation as blocks, and blocks cannot say everything. A model that is trained on what it said must
see it to the letter in the next turn: spaces in arguments, arguments that are no JSON, an answer without text. So each
message is kept beside the blocks that were made of it, and is sent for as long as the agent leaves those blocks alone.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from runner.records.message import Message, text_of, tool_calls_of
from runner.workflows.blocks import arguments_of, in_chat_form, to_blocks, to_chat

_NAME = re.compile(r"[a-zA-Z0-9_\-]{1,64}")
_BLANK = {"text": "[blank text]"}


class Conversation:
    """The messages of one agent, as chat messages and as blocks."""

    def __init__(self) -> None:
        self._kept: defaultdict[str, list[list[Message]]] = defaultdict(list)
        self._arguments: dict[str, str] = {}
        self.turns = 0
        """How often the model has answered."""

    def begin(self, messages: Sequence[Message]) -> list[dict[str, Any]]:
        """The blocks of the messages that a conversation starts with."""
        blocks = to_blocks(messages)
        waiting = list(messages)
        for made in blocks:
            taken = [waiting.pop(0)]
            while waiting and taken[0].get("role") == "tool" and waiting[0].get("role") == "tool":
                taken.append(waiting.pop(0))
            self._kept[_key(made)].append(in_chat_form(taken))
        return blocks

    def answered(self, message: Message, reasoning: str | None) -> list[dict[str, Any]]:
        """The blocks of the model's new answer. Its calls are given ids where they have none of their own."""
        self.turns += 1
        message = self._with_ids(message)
        said = text_of(message)
        blocks: list[dict[str, Any]] = [{"text": said}] if said else []
        for call in tool_calls_of(message):
            self._arguments[call.id] = call.arguments
            use = {"toolUseId": call.id, "name": call.name, "input": arguments_of(call.arguments)}
            blocks.append({"toolUse": use})
        self._kept[_key({"role": "assistant", "content": blocks})].append([message])
        thought = [{"reasoningContent": {"reasoningText": {"text": reasoning}}}] if reasoning else []
        return [*thought, *blocks]

    def arguments(self, call_id: str) -> str | None:
        """The arguments of a call to the letter; None for a call that the model never made."""
        return self._arguments.get(call_id)

    def wire(
        self, messages: Sequence[Mapping[str, Any]], system: str | Sequence[Mapping[str, Any]] | None
    ) -> list[Message]:
        """The chat messages to send: the system prompt first, each message as it was where that is known."""
        made: list[Message] = []
        if system:
            text = system if isinstance(system, str) else [dict(block) for block in system]
            made += to_chat({"role": "system", "content": [{"text": text}] if isinstance(text, str) else text})
        seen: Counter[str] = Counter()
        for message in messages:
            key = _key(message)
            kept = self._kept.get(key)
            # What was said twice may have been said in two ways: the first stands for the first.
            made += to_chat(message) if kept is None else kept[min(seen[key], len(kept) - 1)]
            seen[key] += 1
        return made

    def _with_ids(self, message: Message) -> Message:
        calls = message.get("tool_calls")
        if not isinstance(calls, list) or not calls:
            return message
        entries = [call for call in calls if isinstance(call, Mapping) and isinstance(call.get("function"), Mapping)]
        seen: set[str] = set()
        named = []
        for index, call in enumerate(entries):
            name = call.get("id")
            if not isinstance(name, str) or not name or name in seen:
                name = self._id(index, call["function"])
            seen.add(name)
            named.append(call if name == call.get("id") else {**call, "id": name})
        return {**message, "tool_calls": named}

    def _id(self, index: int, function: Mapping[str, Any]) -> str:
        """An id that is the same in every run of the same conversation, so that a recording still matches."""
        content = f"{self.turns}/{index}/{function.get('name')}/{function.get('arguments')}"
        return f"call_{sha256(content.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _key(message: Mapping[str, Any]) -> str:
    """What a message says. Strands mends blank texts and odd names before it sends them: so does this."""
    role = message.get("role")
    blocks = [block for block in message.get("content") or () if "reasoningContent" not in block]
    if role == "assistant":
        blocks = _mended(blocks)
    return json.dumps([role, blocks], sort_keys=True, default=repr)


def _mended(blocks: list[Mapping[str, Any]]) -> list[Any]:
    if not blocks:
        return [_BLANK]
    if not any("toolUse" in block for block in blocks):
        return [_BLANK if _is_blank(block) else block for block in blocks]
    kept = [block for block in blocks if not _is_blank(block)]
    return [{"toolUse": _named(block["toolUse"])} if "toolUse" in block else block for block in kept]


def _is_blank(block: Mapping[str, Any]) -> bool:
    return "text" in block and not str(block["text"] or "").strip()


def _named(use: Mapping[str, Any]) -> dict[str, Any]:
    name = use.get("name") or ""
    given = use.get("input")
    return {
        "id": use.get("toolUseId"),
        "name": name if _NAME.fullmatch(name) else "INVALID_TOOL_NAME",
        # Strands makes an empty object of arguments that are none.
        "input": given if isinstance(given, Mapping) else {},
    }
