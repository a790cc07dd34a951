"""Written arguments to those that a tool's schema wants: positions get their names, texts the types they stand for.

Only what a text can surely mean is changed ("3" for an integer is 3); what does not fit is left for the tool's own
complaint, which names it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from runner.records.completion import ToolSpec
from runner.workflows.parsers.parser import WrittenCall

_DEEPEST = 20
_WORDS = {"true": True, "false": False, "null": None, "none": None}


class Unbound(Exception):
    """Values without a name of which nobody can say what they are. The message is a sentence to the model."""


def arguments_of(call: WrittenCall, spec: ToolSpec | None) -> dict[str, Any]:
    """The arguments of `call` as JSON values, typed by `spec` where it is known. Raises `Unbound`."""
    if spec is None:
        if call.positional:
            raise Unbound(f"There is no tool called `{call.name}`.")
        return dict(call.arguments)
    schema = spec.parameters
    given = _named(call, schema)
    properties = _mapping(_mapping(schema).get("properties"))
    return {
        name: _typed(value, properties[name], schema, call.source.get(name)) if name in properties else value
        for name, value in given.items()
    }


def _named(call: WrittenCall, schema: Mapping[str, Any]) -> dict[str, Any]:
    names = list(_mapping(schema.get("properties")))
    if not call.positional:
        return dict(call.arguments)
    only = call.positional[0]
    if len(call.positional) == 1 and not call.arguments and isinstance(only, dict) and set(only) <= set(names):
        return dict(only)
    free = [name for name in names if name not in call.arguments]
    if len(call.positional) > len(free):
        takes = f"takes {', '.join(names)}" if names else "takes no arguments"
        raise Unbound(f"`{call.name}` {takes}, and was given {len(call.positional) + len(call.arguments)} values.")
    return {**dict(zip(free, call.positional, strict=False)), **call.arguments}


def _typed(value: Any, schema: Any, root: Mapping[str, Any], source: str | None = None, depth: int = 0) -> Any:
    schema = _resolved(schema, root)
    types = json_types(schema, root)
    if types is None or depth > _DEEPEST:
        return value
    if isinstance(value, str):
        return value if "string" in types else _meant(value, types)
    if source is not None and types == {"string"}:
        return source
    if isinstance(value, dict):
        inner = _mapping(schema.get("properties"))
        return {
            key: _typed(part, inner[key], root, None, depth + 1) if key in inner else part
            for key, part in value.items()
        }
    if isinstance(value, list) and "items" in schema:
        return [_typed(part, schema["items"], root, None, depth + 1) for part in value]
    return value


def _meant(text: str, types: frozenset[str]) -> Any:
    """The JSON value that `text` writes, if it has one of `types`; else the text."""
    bare = text.strip()
    if bare.lower() in _WORDS:
        value: Any = _WORDS[bare.lower()]
    else:
        try:
            value = json.loads(bare)
        except (ValueError, RecursionError):
            return text
    if isinstance(value, float) and value.is_integer() and "number" not in types and "integer" in types:
        return int(value)
    return value if _type_of(value) & types else text


def _type_of(value: Any) -> frozenset[str]:
    if value is None:
        return frozenset({"null"})
    for kind, names in ((bool, {"boolean"}), (int, {"integer", "number"}), (float, {"number"}), (str, {"string"})):
        if isinstance(value, kind):
            return frozenset(names)
    return frozenset({"object"} if isinstance(value, dict) else {"array"})


def json_types(schema: Any, root: Mapping[str, Any], depth: int = 0) -> frozenset[str] | None:
    """The JSON types that `schema` allows; None where it does not say."""
    schema = _resolved(schema, root)
    if not schema or depth > _DEEPEST:
        return None
    kind = schema.get("type")
    if isinstance(kind, str):
        return frozenset({kind})
    if isinstance(kind, (list, tuple)):
        return frozenset(str(each) for each in kind)
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if isinstance(branches, (list, tuple)) and branches:
            known = [json_types(branch, root, depth + 1) for branch in branches]
            stated = [each for each in known if each is not None]
            return frozenset().union(*stated) if len(stated) == len(known) else None
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, (list, tuple)):
        return frozenset().union(*(_type_of(value) for value in values))
    return None


def _resolved(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    for _ in range(_DEEPEST):
        found = _mapping(schema)
        reference = found.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return found
        target: Any = root
        for part in reference[2:].split("/"):
            target = _mapping(target).get(part.replace("~1", "/").replace("~0", "~"))
        schema = target
    return {}


def _mapping(value: Any) -> Mapping[str, Any]:
    found: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
    return found
