"""Chat messages become an ATIF trajectory: a pure conversion; `check` says whether a document keeps the rules.

Nothing is guessed: what cannot be put where it belongs is kept in an `extra`, in its own words.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from runner.records.atif_rules import check

__all__ = ["VERSION", "check", "dump", "plain", "steps_of"]

VERSION = "ATIF-v1.7"

_TIMES = ("created_at", "timestamp", "completed_at")
_REASONING = ("reasoning_content", "reasoning", "thinking")
_SOURCES = {"system": "system", "developer": "system", "user": "user", "assistant": "agent"}


def steps_of(messages: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The steps of a conversation. Tool messages become observations of the latest agent step."""
    steps: list[dict[str, Any]] = []
    agent: dict[str, Any] | None = None
    for message in messages:
        if message.get("role") in ("tool", "function"):
            if agent is None:
                steps.append(_new_step(len(steps) + 1, "system", ""))
            _observe(steps[-1] if agent is None else agent, message)
            continue
        steps.append(_step(message, len(steps) + 1))
        if steps[-1]["source"] == "agent":
            agent = steps[-1]
    return steps


def plain(value: Any) -> Any:
    """The value as JSON can hold it: numbers that are not finite, and objects it does not know, become text."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, bytes):
        return [plain(item) for item in value]
    return str(value)


def dump(document: Mapping[str, Any]) -> bytes:
    """The document as its file holds it: ASCII, indented by two, arrays of numbers on one line."""
    import re

    text = json.dumps(document, indent=2, allow_nan=False)
    number = r"-?\d[\d.eE+-]*"
    rows = re.compile(rf"\[\n\s+({number}(?:,\n\s+{number})*)\n\s+\]")  # no string holds a raw line feed
    return rows.sub(lambda found: f"[{' '.join(found[1].split())}]", text).encode() + b"\n"


def as_text(value: Any) -> str:
    """A string as it is, nothing as "", anything else as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(plain(value), ensure_ascii=False)


def usage_metrics(usage: Any) -> dict[str, Any]:
    """Tokens by ATIF's names, from either naming of usage records; zeros are kept."""
    if not isinstance(usage, Mapping):
        return {}
    details = usage.get("prompt_tokens_details") or usage.get("input_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    found = {
        "prompt_tokens": _first(usage, "prompt_tokens", "input_tokens"),
        "completion_tokens": _first(usage, "completion_tokens", "output_tokens"),
        "cached_tokens": _first(usage, "cached_tokens", "cache_read_input_tokens") if cached is None else cached,
    }
    return {name: value for name, value in found.items() if _is_count(value)}


def _first(record: Mapping[str, Any], *names: str) -> Any:
    return next((record[name] for name in names if record.get(name) is not None), None)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _new_step(number: int, source: str, message: Any) -> dict[str, Any]:
    return {"step_id": number, "source": source, "message": message}


def _step(message: Mapping[str, Any], number: int) -> dict[str, Any]:
    role = message.get("role")
    source = _SOURCES.get(role) if isinstance(role, str) else None
    step = _new_step(number, source or "user", _content(message.get("content")))
    left = {key: value for key, value in message.items() if key not in ("role", "content") and value is not None}
    if source is None:
        left["original_role"] = role
    time = next((found for name in _TIMES if (found := _time(left.get(name))) is not None), None)
    if time is not None:
        step["timestamp"] = time[0]
        left = {key: value for key, value in left.items() if key not in _TIMES or _time(value) is None}
    if source == "agent":
        _agent_fields(step, left)
    if left:
        step["extra"] = plain(left)
    return step


def _agent_fields(step: dict[str, Any], left: dict[str, Any]) -> None:
    """Move what only an agent's step has out of the rest of its message."""
    for name in _REASONING:
        if name in left and "reasoning_content" not in step:
            step["reasoning_content"] = as_text(left.pop(name))
    for name in ("model_name", "reasoning_effort"):
        if isinstance(left.get(name), str):
            step[name] = left.pop(name)
    calls = left.get("tool_calls")
    if isinstance(calls, Sequence) and not isinstance(calls, str | bytes):
        found = _calls(calls, step["step_id"])
        if found:
            step["tool_calls"] = found
        rest = [call for call in calls if not isinstance(call, Mapping)]
        del left["tool_calls"]
        if rest:
            left["tool_calls"] = rest
    extra = left.get("extra")
    response = extra.get("response") if isinstance(extra, Mapping) else None
    usage = left.get("usage") or (response.get("usage") if isinstance(response, Mapping) else None)
    metrics = usage_metrics(usage)
    if metrics:
        step["metrics"] = metrics
        step["llm_call_count"] = 1


def _calls(calls: Sequence[Any], number: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    taken: set[str] = set()
    for place, call in enumerate(calls):
        if not isinstance(call, Mapping):
            continue
        function = call.get("function")
        function = function if isinstance(function, Mapping) else {}
        given = call.get("id")
        name = given if isinstance(given, str) and given and given not in taken else f"step_{number}_call_{place}"
        while name in taken:
            name += "_"
        taken.add(name)
        record: dict[str, Any] = {
            "tool_call_id": name,
            "function_name": as_text(function.get("name")),
            "arguments": _arguments(function.get("arguments")),
        }
        if name != given and given is not None:
            record["extra"] = {"original_id": plain(given)}
        found.append(record)
    return found


def _arguments(given: Any) -> dict[str, Any]:
    if isinstance(given, Mapping):
        return dict(plain(given))
    raw = as_text(given)
    try:
        value = json.loads(raw, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        return {"_raw": raw}
    return value if isinstance(value, dict) else {"_raw": raw}


def _refuse(text: str) -> Any:
    raise ValueError(text)


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _observe(step: dict[str, Any], message: Mapping[str, Any]) -> None:
    result: dict[str, Any] = {"content": _content(message.get("content"))}
    left = {
        key: value
        for key, value in message.items()
        if key not in ("role", "content", "tool_call_id") and value is not None
    }
    named = message.get("tool_call_id")
    if isinstance(named, str) and any(call["tool_call_id"] == named for call in step.get("tool_calls", ())):
        result["source_call_id"] = named
    elif named is not None:
        left["tool_call_id"] = named
    if left:
        result["extra"] = plain(left)
    step.setdefault("observation", {"results": []})["results"].append(result)


def _content(content: Any) -> Any:
    """Text, or parts; a part that is not text is its JSON."""
    if isinstance(content, str) or content is None:
        return content or ""
    if not isinstance(content, Sequence) or isinstance(content, bytes):
        return as_text(content)
    return [{"type": "text", "text": _part(part)} for part in content] or ""


def _part(part: Any) -> str:
    if isinstance(part, Mapping) and isinstance(part.get("text"), str) and set(part) <= {"type", "text"}:
        return str(part["text"])
    return as_text(part)


def _time(value: Any) -> tuple[str] | None:
    """An ISO timestamp, in a tuple, from seconds since 1970 or from text that is one."""
    try:
        if isinstance(value, str):
            datetime.fromisoformat(value)
            return (value,)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return (datetime.fromtimestamp(value, UTC).isoformat(),)
    except (ValueError, OverflowError, OSError):
        return None
    return None
