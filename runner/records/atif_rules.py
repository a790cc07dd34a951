"""`check`: what is wrong with a trajectory document, by the rules of ATIF 1.0 to 1.7.

A document is plain JSON; nothing is repaired and nothing raises.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

Rule: TypeAlias = Callable[[Any], bool]

_AGENT_ONLY = ("model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics")
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def check(document: Any) -> list[str]:
    """Every breach, each with its place (`steps[3].metrics: …`); empty if the document is good."""
    return list(_trajectory(document, ""))


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _object(value: Any) -> bool:
    return isinstance(value, Mapping)


def _list(value: Any) -> bool:
    return isinstance(value, list)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _ids(value: Any) -> bool:
    return _list(value) and all(isinstance(one, int) and not isinstance(one, bool) for one in value)


def _numbers(value: Any) -> bool:
    return _list(value) and all(map(_number, value))


def _content(value: Any) -> bool:
    return isinstance(value, str) or (_list(value) and all(map(_part, value)))


def _part(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    if value.get("type") == "text":
        return set(value) == {"type", "text"} and _text(value["text"])
    source = value.get("source")
    if value.get("type") != "image" or set(value) != {"type", "source"} or not isinstance(source, Mapping):
        return False
    return set(source) == {"media_type", "path"} and source["media_type"] in _IMAGES and _text(source["path"])


def _time(value: Any) -> bool:
    try:
        datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return False
    return True


_TRAJECTORY: dict[str, Rule] = {
    "schema_version": lambda value: _text(value) and re.fullmatch(r"ATIF-v1\.[0-7]", value) is not None,
    "session_id": _text,
    "trajectory_id": _text,
    "agent": _object,
    "steps": lambda value: _list(value) and bool(value),
    "notes": _text,
    "final_metrics": _object,
    "continued_trajectory_ref": _text,
    "extra": _object,
    "subagent_trajectories": _list,
}
_AGENT: dict[str, Rule] = {
    "name": _text,
    "version": _text,
    "model_name": _text,
    "tool_definitions": lambda value: _list(value) and all(map(_object, value)),
    "extra": _object,
}
_STEP: dict[str, Rule] = {
    "step_id": _count,
    "timestamp": _time,
    "source": lambda value: value in ("system", "user", "agent"),
    "message": _content,
    "model_name": _text,
    "reasoning_effort": lambda value: _text(value) or _number(value),
    "reasoning_content": _text,
    "tool_calls": _list,
    "observation": _object,
    "metrics": _object,
    "is_copied_context": _flag,
    "llm_call_count": _count,
    "extra": _object,
}
_CALL: dict[str, Rule] = {"tool_call_id": _text, "function_name": _text, "arguments": _object, "extra": _object}
_RESULT: dict[str, Rule] = {
    "source_call_id": _text,
    "content": _content,
    "subagent_trajectory_ref": _list,
    "extra": _object,
}
_REFERENCE: dict[str, Rule] = {"trajectory_id": _text, "trajectory_path": _text, "session_id": _text, "extra": _object}
_METRICS: dict[str, Rule] = {
    "prompt_tokens": _count,
    "completion_tokens": _count,
    "cached_tokens": _count,
    "cost_usd": _number,
    "prompt_token_ids": _ids,
    "completion_token_ids": _ids,
    "logprobs": _numbers,
    "extra": _object,
}
_FINAL: dict[str, Rule] = {
    "total_prompt_tokens": _count,
    "total_completion_tokens": _count,
    "total_cached_tokens": _count,
    "total_cost_usd": _number,
    "total_steps": _count,
    "extra": _object,
}


def _fields(value: Any, rules: Mapping[str, Rule], required: Iterable[str], place: str) -> Iterable[str]:
    """Breaches of an object's own fields."""
    if not isinstance(value, Mapping):
        yield f"{place or 'document'}: is not an object"
        return
    dot = f"{place}." if place else ""
    for name in required:
        if value.get(name) is None:
            yield f"{dot}{name}: is missing"
    for name, content in value.items():
        if name not in rules:
            yield f"{dot}{name}: is not a field of this object"
        elif content is not None and not rules[name](content):
            yield f"{dot}{name}: is not what it must be"
        elif name in ("extra", "arguments", "tool_definitions") and not _finite(content):
            yield f"{dot}{name}: holds a number that is not finite"


def _finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_finite, value.values()))
    return all(map(_finite, value)) if isinstance(value, list) else True


def _items(value: Any, name: str, place: str) -> Iterable[tuple[str, Any]]:
    """The objects of a list field, with their places."""
    found = value.get(name) if isinstance(value, Mapping) else None
    for number, item in enumerate(found if isinstance(found, list) else ()):
        yield f"{place}{name}[{number}]", item


def _trajectory(document: Any, place: str) -> Iterable[str]:
    yield from _fields(document, _TRAJECTORY, ("schema_version", "agent", "steps"), place)
    if not isinstance(document, Mapping):
        return
    dot = f"{place}." if place else ""
    if isinstance(document.get("agent"), Mapping):
        yield from _fields(document["agent"], _AGENT, ("name", "version"), f"{dot}agent")
    if isinstance(document.get("final_metrics"), Mapping):
        yield from _fields(document["final_metrics"], _FINAL, (), f"{dot}final_metrics")
    known: list[Any] = []
    for where, inner in _items(document, "subagent_trajectories", dot):
        yield from _trajectory(inner, where)
        known.append(inner.get("trajectory_id") if isinstance(inner, Mapping) else None)
    if None in known or len(set(map(str, known))) < len(known):
        yield f"{dot}subagent_trajectories: need ids that differ"
    for number, (where, step) in enumerate(_items(document, "steps", dot), start=1):
        yield from _step(step, number, known, where)


def _step(step: Any, number: int, known: list[Any], place: str) -> Iterable[str]:
    yield from _fields(step, _STEP, ("step_id", "source", "message"), place)
    if not isinstance(step, Mapping):
        return
    if step.get("step_id") != number:
        yield f"{place}.step_id: must be {number}"
    if step.get("source") != "agent":
        yield from (
            f"{place}.{name}: only an agent's step has one" for name in _AGENT_ONLY if step.get(name) is not None
        )
    if step.get("llm_call_count") == 0:
        barred = ("metrics", "reasoning_content", "reasoning_effort")
        yield from (f"{place}.{name}: no model was called" for name in barred if step.get(name) is not None)
    if isinstance(step.get("metrics"), Mapping):
        yield from _fields(step["metrics"], _METRICS, (), f"{place}.metrics")
    called: list[Any] = []
    for where, call in _items(step, "tool_calls", f"{place}."):
        yield from _fields(call, _CALL, ("tool_call_id", "function_name", "arguments"), where)
        called.append(call.get("tool_call_id") if isinstance(call, Mapping) else None)
    if step.get("observation") is not None:
        yield from _observation(step["observation"], called, known, f"{place}.observation")


def _observation(observation: Any, called: list[Any], known: list[Any], place: str) -> Iterable[str]:
    yield from _fields(observation, {"results": _list}, ("results",), place)
    for where, result in _items(observation, "results", f"{place}."):
        yield from _fields(result, _RESULT, (), where)
        if not isinstance(result, Mapping):
            continue
        if result.get("source_call_id") is not None and result["source_call_id"] not in called:
            yield f"{where}.source_call_id: names no tool call of this step"
        for inner, reference in _items(result, "subagent_trajectory_ref", f"{where}."):
            yield from _fields(reference, _REFERENCE, (), inner)
            yield from _resolved(reference, known, inner)


def _resolved(reference: Any, known: list[Any], place: str) -> Iterable[str]:
    if not isinstance(reference, Mapping) or reference.get("trajectory_path") is not None:
        return
    if reference.get("trajectory_id") is None:
        yield f"{place}: names no trajectory"
    elif reference["trajectory_id"] not in known:
        yield f"{place}.trajectory_id: names no embedded trajectory"
