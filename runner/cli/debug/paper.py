"""How a message, a call and a schema look on the screen: wrapped to its width, and folded when they are long.

What a model or a tool wrote is shown with its control characters spelled out: it cannot move the cursor.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from runner.batch.transcript import safe
from runner.cli.console import Style
from runner.records.completion import Sampling, ToolSpec
from runner.records.message import Message, ToolCall, text_of, tool_calls_of

FOLD = 12
"""Lines of a text that are shown before it is folded."""


def columns(text: str) -> int:
    """How wide a text stands on a terminal."""
    return sum(_wide(character) for character in text)


def _wide(character: str) -> int:
    if unicodedata.combining(character) or character in "\u200d\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def rule(
    style: Style, title: str, note: str = "", *, line: str = "─", paint: Callable[[str], str] | None = None
) -> str:
    """`── title ─────── note`, as wide as a line may be."""
    fill = style.width - columns(title) - columns(note) - (5 if note else 4)
    body = f"{style.dim(line * 2)} {(paint or style.bold)(title)} {style.dim(line * max(3, fill))}"
    return f"{body} {style.dim(note)}" if note else body


def indented(style: Style, text: str, *, whole: bool = False, how: str = "m N shows all") -> list[str]:
    """`text` as lines of two spaces and no more columns than there are, folded unless `whole`."""
    lines = [row for line in safe(text).expandtabs(4).split("\n") for row in _wrapped(line, style.width - 2)]
    if whole or len(lines) <= FOLD + 2:
        return [f"  {line}".rstrip() for line in lines]
    hidden = len(lines) - FOLD
    shown = [f"  {line}".rstrip() for line in (*lines[: FOLD - 4], "", *lines[-4:])]
    shown[FOLD - 4] = style.dim(f"  … {hidden} more lines, {len(text):,} characters in all; {how}")
    return shown


def _wrapped(line: str, width: int) -> Iterator[str]:
    """`line` in pieces of at most `width` columns, cut at a space where one is near."""
    while columns(line) > width:
        cut, used = 0, 0
        while cut < len(line) and used + _wide(line[cut]) <= width:
            used += _wide(line[cut])
            cut += 1
        space = line.rfind(" ", max(1, cut // 2), cut + 1)
        end = space if space > 0 else max(1, cut)
        yield line[:end]
        line = line[end + 1 :] if space > 0 else line[end:]
    yield line


def message_lines(
    style: Style, number: int | None, message: Message, note: str = "", *, whole: bool = False
) -> list[str]:
    """One message under its rule; `number` is its place in the conversation, from 0."""
    role = str(message.get("role") or "?")
    paint = {"assistant": style.ok, "tool": style.name, "system": style.dim}.get(role, style.bold)
    name = f" {safe(str(message['name']))}" if role == "tool" and message.get("name") else ""
    title = f"{role}{name}" if number is None else f"{number} {role}{name}"
    how = "m shows all" if number is None else f"m {number} shows all"
    text, calls = text_of(message), tool_calls_of(message) if role == "assistant" else []
    lines = indented(style, text, whole=whole, how=how) if text else []
    parts = message.get("content")
    if isinstance(parts, list) and (others := [part for part in parts if not _is_text(part)]):
        kinds = ", ".join(str(part.get("type")) for part in others if isinstance(part, Mapping))
        lines.append(style.dim(f"  and {len(others)} parts that are no text: {safe(kinds)}"))
    for call in calls:
        lines += call_lines(style, call, whole=whole, how=how)
    return [rule(style, title, note, paint=paint), *(lines or [style.dim("  (empty)")])]


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, Mapping) and isinstance(part.get("text"), str))


def call_lines(style: Style, call: ToolCall, *, whole: bool = False, how: str = "m shows all") -> list[str]:
    """`→ name(a=1, b="x")`; arguments that are no JSON object are shown as they were written."""
    try:
        found = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        words = ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in found.items())
        lines = indented(style, f"→ {call.name}({words})", whole=whole, how=how)
        return [style.name(line) for line in lines]
    lines = indented(style, f"→ {call.name} {call.arguments}", whole=whole, how=how)
    return [style.name(lines[0]), *lines[1:], style.warn("  the arguments are no JSON object")]


def sampling_lines(style: Style, sampling: Sampling) -> list[str]:
    """What is sent of `[sampling]`, a line each."""
    found = _given(sampling)
    width = max(map(len, found), default=0)
    lines = [f"  {key:<{width}}  {json.dumps(value, ensure_ascii=False)}" for key, value in found.items()]
    return lines or [style.dim("  nothing is sent: the endpoint's own defaults hold")]


def sampling_words(sampling: Sampling) -> str:
    """The same on one line."""
    words = [f"{key}={json.dumps(value, ensure_ascii=False)}" for key, value in _given(sampling).items()]
    return " ".join(words) or "default sampling"


def _given(sampling: Sampling) -> dict[str, Any]:
    named = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
        "stop": list(sampling.stop) or None,
        "seed": sampling.seed,
    }
    return {**{key: value for key, value in named.items() if value is not None}, **sampling.extra}


def tool_lines(style: Style, tool: ToolSpec) -> list[str]:
    """A tool as the model sees it: its description and the schema of its arguments."""
    schema = json.dumps(dict(tool.parameters), ensure_ascii=False, indent=2, default=str)
    described = indented(style, tool.description, whole=True) if tool.description else []
    return [rule(style, tool.name, "tool", paint=style.name), *described, *indented(style, schema, whole=True)]
