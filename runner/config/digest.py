"""What a config comes to, sorted by what it affects, and a digest of each part.

A run compares digests with the file it resumes: a changed "result" plays again, a changed "grade" grades again, a
changed "operation" does neither. Every value in force counts, so a default that changes between versions is seen too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, get_origin

from runner.config.config import RolloutConfig
from runner.config.fields import members
from runner.config.reference import Location, Reference, SchemaText, Text
from runner.config.section import Affects, Section, Tag

Facts = dict[str, Any]

_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"), allow_nan=False)


def facts(config: RolloutConfig) -> dict[str, Facts]:
    """Every value in force as JSON by dotted key, in the part it affects. Texts and schemas are their contents."""
    parts: dict[str, Facts] = {"result": {}, "grade": {}, "operation": {}}
    for affects, key, value in _section(config, "", "operation"):
        parts[affects][key] = value
    # Defaults that depend on other keys are said as what they come to.
    parts["result"]["workflow.agent"] = _json(config.agent)
    if config.model is not None:
        parts["result"]["model.provider"] = config.model.effective_provider
    return parts


def digest(part: Mapping[str, Any]) -> str:
    """Sixteen hex digits that two parts share exactly when they are equal, whatever the order of their keys."""
    return hashlib.sha256(_CANONICAL.encode(part).encode()).hexdigest()[:16]


def changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The keys whose values differ, or that only one part has, in order."""
    return sorted(key for key in old.keys() | new.keys() if _differ(old, new, key))


def _differ(old: Mapping[str, Any], new: Mapping[str, Any], key: str) -> bool:
    missing = object()
    one, other = old.get(key, missing), new.get(key, missing)
    if one is missing or other is missing:
        return True
    return digest({"": one}) != digest({"": other})


def _section(section: Section, prefix: str, around: Affects) -> Iterator[tuple[Affects, str, Any]]:
    for name, info in type(section).model_fields.items():
        affects = next((tag.affects for tag in info.metadata if isinstance(tag, Tag)), around)
        yield from _value(getattr(section, name), info.annotation, f"{prefix}{info.alias or name}", affects)


def _value(value: Any, annotation: Any, key: str, affects: Affects) -> Iterator[tuple[Affects, str, Any]]:
    if isinstance(value, Section):
        yield from _section(value, f"{key}.", affects)
    elif isinstance(value, dict) and _is_keyed(annotation):
        for name, inner in value.items():
            yield from _value(inner, Any, f"{key}.{_quoted(name)}", affects)
    else:
        yield affects, key, _json(value)


def _is_keyed(annotation: Any) -> bool:
    """Whether each key of the table is a fact of its own: a schema or free settings are one fact."""
    return any(get_origin(one) is dict and one != dict[str, Any] for one in members(annotation))


def _quoted(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() else f'"{name}"'


def _json(value: Any) -> Any:
    if isinstance(value, Text):
        return value.text
    if isinstance(value, SchemaText):
        return _json(value.table)
    if isinstance(value, Reference | Location):
        return value.text
    if isinstance(value, Section):
        return {info.alias or name: _json(getattr(value, name)) for name, info in type(value).model_fields.items()}
    if isinstance(value, Mapping):
        return {str(key): _json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_json(inner) for inner in value]
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)
