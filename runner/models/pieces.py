"""The content of an answer that came in pieces: texts, thoughts and the rest, however an endpoint cut them.

Some reasoning models put their thoughts between the texts of `content`; whole answers and streams are read alike here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

THOUGHTS = frozenset({"thinking", "reasoning"})


def split(parts: Iterable[Any]) -> tuple[list[Any], str]:
    """The pieces of a content list, a text as a string and any other part as it is; and its thoughts as one text."""
    pieces: list[Any] = []
    thoughts: list[str] = []
    for part in parts:
        if isinstance(part, dict) and part.get("type") in THOUGHTS:
            thoughts.append(_thought(part))
        elif isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
            pieces.append(part["text"])
        else:
            pieces.append(part)
    return pieces, "".join(thoughts)


def join(pieces: Sequence[Any]) -> Any:
    """What `content` holds: one text if there are only texts, else a list of parts."""
    if all(isinstance(piece, str) for piece in pieces):
        return "".join(pieces)
    parts: list[Any] = []
    for piece in pieces:
        if not isinstance(piece, str):
            parts.append(piece)
        elif parts and isinstance(parts[-1], dict) and parts[-1].get("type") == "text":
            parts[-1] = {"type": "text", "text": parts[-1]["text"] + piece}
        else:
            parts.append({"type": "text", "text": piece})
    return parts


def _thought(part: dict[str, Any]) -> str:
    """The text of a thought: a string, or again a list of text parts."""
    value = part.get(part["type"]) or part.get("text")
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(item["text"] for item in value if isinstance(item, dict) and isinstance(item.get("text"), str))
    return ""
