"""Chat messages to the content blocks of Strands, and back. Pure: nothing here imports Strands.

Blocks know less than chat messages do: no name of a speaker, no text that is no JSON as a call's arguments, no picture
by its address. What they have no word for is kept as it is in a block of its own, so that the way back finds it.
"""

from __future__ import annotations

import base64
import json
import mimetypes
from collections.abc import Mapping, Sequence
from typing import Any

from runner.records.message import Message

KEPT = "chatPart"
"""The block that holds a part of a chat message for which Strands has no block."""

_BLOCKS = frozenset(
    {"text", "toolUse", "toolResult", "image", "document", "video", "reasoningContent", "cachePoint", "guardContent",
     "citationsContent", KEPT}
)  # fmt: skip


def to_blocks(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Messages of Strands. Those that are such already stay as they are; a run of tool messages becomes one."""
    made: list[dict[str, Any]] = []
    after_tool = False
    for message in messages:
        if _is_native(message):
            made.append(dict(message))
        elif message.get("role") == "tool":
            if not after_tool:
                made.append({"role": "user", "content": []})
            made[-1]["content"].append(_result_block(message))
        else:
            blocks = [*_content_blocks(message.get("content")), *map(_use_block, _calls(message))]
            made.append({"role": message.get("role", "user"), "content": blocks})
        after_tool = message.get("role") == "tool"
    return made


def to_chat(message: Mapping[str, Any]) -> list[Message]:
    """The chat messages of one message of Strands: tool results come first, each as a message of its own."""
    blocks = message.get("content") or []
    made = [_tool_message(block["toolResult"]) for block in blocks if "toolResult" in block]
    parts = [part for part in map(_part, blocks) if part is not None]
    calls = [_call(block["toolUse"]) for block in blocks if "toolUse" in block]
    if parts or calls or not made:
        own: Message = {"role": message.get("role", "user"), "content": _content(parts) if parts or not calls else None}
        made.append({**own, "tool_calls": calls} if calls else own)
    return made


def in_chat_form(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """The messages, those with blocks of Strands made into chat messages."""
    made: list[Message] = []
    for message in messages:
        made.extend(to_chat(message) if _is_native(message) else [dict(message)])
    return made


def _is_native(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return isinstance(content, list) and all(isinstance(block, Mapping) and _is_block(block) for block in content)


def _is_block(block: Mapping[str, Any]) -> bool:
    return "type" not in block and not _BLOCKS.isdisjoint(block)


def _calls(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, Mapping)] if isinstance(calls, list) else []


def _content_blocks(content: Any) -> list[dict[str, Any]]:
    if content is None:
        return []
    if isinstance(content, str):
        return [{"text": content}]
    return [_block(part) for part in content]


def _block(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"text": part}
    if isinstance(part, Mapping):
        if _is_block(part):
            return dict(part)
        if part.get("type") == "text" and set(part) == {"type", "text"}:
            return {"text": part["text"]}
        if part.get("type") == "image_url":
            return _image_block(part) or {KEPT: dict(part)}
    return {KEPT: part}


def _image_block(part: Mapping[str, Any]) -> dict[str, Any] | None:
    """A picture that came with the message; None for one by its address, or with more to it than the picture."""
    image = part["image_url"]
    url = image.get("url") if isinstance(image, Mapping) and set(image) == {"url"} else None
    head, found, data = str(url or "").partition(";base64,")
    if not found or not head.startswith("data:image/"):
        return None
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError:
        return None
    return {"image": {"format": head.removeprefix("data:image/"), "source": {"bytes": raw}}}


def _use_block(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    function = function if isinstance(function, Mapping) else {}
    arguments = function.get("arguments")
    return {
        "toolUse": {
            "toolUseId": call.get("id") or "",
            "name": function.get("name") or "",
            "input": arguments_of(arguments) if isinstance(arguments, str) else arguments or {},
        }
    }


def arguments_of(text: str) -> Any:
    """The object that the arguments of a call are; the text itself when they are none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict) else text


def _result_block(message: Mapping[str, Any]) -> dict[str, Any]:
    content = _content_blocks(message.get("content"))
    return {
        "toolResult": {"toolUseId": message.get("tool_call_id") or "", "status": "success", "content": content},
    }


def _tool_message(result: Mapping[str, Any]) -> Message:
    blocks = [{"text": _as_json(block["json"])} if "json" in block else block for block in result.get("content") or []]
    parts = [part for part in map(_part, blocks) if part is not None]
    return {"role": "tool", "tool_call_id": result.get("toolUseId") or "", "content": _content(parts)}


def _call(use: Mapping[str, Any]) -> dict[str, Any]:
    given = use.get("input")
    arguments = given if isinstance(given, str) else _as_json({} if given is None else given)
    function = {"name": use.get("name") or "", "arguments": arguments}
    return {"id": use.get("toolUseId") or "", "type": "function", "function": function}


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _content(parts: list[Any]) -> Any:
    """One text where there is nothing but one text: templates of small models know nothing else."""
    if not parts:
        return ""
    if len(parts) == 1 and isinstance(parts[0], dict) and set(parts[0]) == {"type", "text"}:
        return parts[0]["text"]
    return parts


def _part(block: Mapping[str, Any]) -> Any:
    """The part of a chat message; None for a block that says nothing to a model, such as its own earlier thoughts."""
    if KEPT in block:
        return block[KEPT]
    if "text" in block:
        return {"type": "text", "text": block["text"]}
    if "image" in block:
        return _image_part(block["image"])
    if "document" in block:
        return _document_part(block["document"])
    if "guardContent" in block:
        return {"type": "text", "text": block["guardContent"].get("text", {}).get("text", "")}
    if "citationsContent" in block:
        said = block["citationsContent"].get("content") or []
        return {"type": "text", "text": "".join(each.get("text", "") for each in said)}
    return None


def _image_part(image: Mapping[str, Any]) -> dict[str, Any] | None:
    raw = image.get("source", {}).get("bytes")
    if raw is None:
        return None
    data = base64.b64encode(raw).decode()
    return {"type": "image_url", "image_url": {"url": f"data:image/{image.get('format', 'png')};base64,{data}"}}


def _document_part(document: Mapping[str, Any]) -> dict[str, Any] | None:
    raw = document.get("source", {}).get("bytes")
    if raw is None:
        return None
    kind = mimetypes.types_map.get(f".{document.get('format', '')}", "application/octet-stream")
    data = f"data:{kind};base64,{base64.b64encode(raw).decode()}"
    return {"type": "file", "file": {"file_data": data, "filename": document.get("name", "document")}}
