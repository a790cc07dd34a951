"""What to tell a model about arguments that do not fit: what was found, what is allowed, the shape to send.

A model reads this in the middle of a conversation and has one try: so the name of each argument, the nearest right
name, and the whole shape, but at most five problems and no JSON Schema jargon.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from runner.tools.schema import resolved

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

_MOST_PROBLEMS = 5
_LONGEST_VALUE = 80
_LONGEST_SHAPE = 600


def complaint(validator: Draft202012Validator, schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """One sentence for each of the first problems of `arguments`, and the shape of `schema`."""
    # A misspelt name first: it explains the missing one.
    errors = sorted(validator.iter_errors(arguments), key=lambda error: error.validator != "additionalProperties")
    problems = list(dict.fromkeys(said for error in errors for said in _problems(error, schema)))
    shown = problems[:_MOST_PROBLEMS]
    if len(problems) > len(shown):
        shown.append(f"and {len(problems) - len(shown)} more")
    return f"Bad arguments: {'; '.join(shown)}. Expected: {shape(schema)}"


def _problems(error: ValidationError, root: Mapping[str, Any]) -> list[str]:
    if error.validator == "additionalProperties" and error.validator_value is False:
        return _unknown(error)
    if error.validator == "required" and isinstance(error.instance, dict):
        return [f"{_place(error, name)} is missing" for name in _wanted(error) if name not in error.instance]
    if error.validator in ("anyOf", "oneOf") and error.context:
        return [_alternatives(error, root)]
    return [_fact(error)]


def _wanted(error: ValidationError) -> list[Any]:
    return list(error.validator_value) if isinstance(error.validator_value, (list, tuple)) else []


def _place(error: ValidationError, *more: str) -> str:
    path = [*error.absolute_path, *more]
    if not path:
        return "the arguments"
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return f"`{_cut(text.removeprefix('.'))}`"


def _unknown(error: ValidationError) -> list[str]:
    schema: Mapping[str, Any] = error.schema if isinstance(error.schema, Mapping) else {}
    known = list(schema.get("properties", {}))
    if schema.get("patternProperties") or not isinstance(error.instance, dict):
        return [f"{_place(error)}: {_cut(error.message, 200)}"]
    return [_stranger(error, error.instance, name, known) for name in error.instance if name not in known]


def _stranger(error: ValidationError, given: Mapping[str, Any], name: str, known: list[str]) -> str:
    absent = [each for each in known if each not in given]
    near = get_close_matches(name, absent, n=1, cutoff=0.6)
    if near:
        return f"{_place(error, name)} is not known (did you mean `{near[0]}`?)"
    return f"{_place(error, name)} is not known" + ("" if known else ", it takes none")


def _alternatives(error: ValidationError, root: Mapping[str, Any]) -> str:
    """The one alternative that got furthest, if the value reached into it; else what the alternatives are."""
    branches: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.schema_path[0], []).append(inner)
    meant = [errors for errors in branches.values() if not any(map(_rules_out, errors))]
    if len(meant) == 1:
        return _problems(meant[0][0], root)[0]
    options = [_brief(each, root, 1) for each in _wanted(error)]
    return f"{_place(error)} must be {' or '.join(dict.fromkeys(options))}, found {_found(error.instance)}"


def _rules_out(error: ValidationError) -> bool:
    """Whether an alternative was plainly not the one meant: another type, or another value of a discriminator."""
    if error.validator in ("const", "enum"):
        return len(error.path) <= 1
    return error.validator == "type" and not error.path


_FACTS: dict[str, Callable[[Any], str]] = {
    "type": lambda kind: f"must be {_kind(kind)}",
    "enum": lambda values: f"must be one of {_cut(', '.join(_json(each) for each in values), 300)}",
    "const": lambda value: f"must be {_json(value)}",
    "minimum": lambda bound: f"must be at least {bound}",
    "maximum": lambda bound: f"must be at most {bound}",
    "exclusiveMinimum": lambda bound: f"must be more than {bound}",
    "exclusiveMaximum": lambda bound: f"must be less than {bound}",
    "multipleOf": lambda step: f"must be a multiple of {step}",
    "minLength": lambda count: f"must have at least {_count(count, 'character')}",
    "maxLength": lambda count: f"must have at most {_count(count, 'character')}",
    "pattern": lambda pattern: f"must match the regular expression {_json(pattern)}",
    "minItems": lambda count: f"must have at least {_count(count, 'item')}",
    "maxItems": lambda count: f"must have at most {_count(count, 'item')}",
    "uniqueItems": lambda _: "must not hold an item twice",
    "minProperties": lambda count: f"must have at least {_count(count, 'entry', 'entries')}",
    "maxProperties": lambda count: f"must have at most {_count(count, 'entry', 'entries')}",
}


def _fact(error: ValidationError) -> str:
    say = _FACTS.get(str(error.validator))
    if say is None:
        return f"{_place(error)}: {_cut(error.message, 200)}"
    if "propertyNames" in error.absolute_schema_path:
        return f"the name {_cut(_json(error.instance))} {say(error.validator_value)}"
    fact = f"{_place(error)} {say(error.validator_value)}, found {_found(error.instance)}"
    if error.validator == "enum" and isinstance(error.instance, str):
        words = [each for each in _wanted(error) if isinstance(each, str)]
        near = get_close_matches(error.instance, words, n=1, cutoff=0.6)
        fact += f" (did you mean {_json(near[0])}?)" if near else ""
    return fact


_A = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    "null": "null",
}


def _kind(kind: Any) -> str:
    kinds = [kind] if isinstance(kind, str) else list(kind)
    return " or ".join(_A.get(each, str(each)) for each in kinds)


def _found(value: Any) -> str:
    if isinstance(value, str):
        return f"the string {_cut(_json(value))}"
    if isinstance(value, (dict, list)):
        return f"{'the object' if isinstance(value, dict) else 'the array'} {_cut(_json(value))}"
    return _json(value)


def _count(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 's'}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _cut(text: str, longest: int = _LONGEST_VALUE) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"


def shape(schema: Mapping[str, Any]) -> str:
    """The arguments on one line: `{"query": string, "top_k"?: integer, 1 to 20, default 5}`."""
    return _cut(_brief(schema, schema, 3), _LONGEST_SHAPE)


def _brief(schema: Any, root: Mapping[str, Any], depth: int) -> str:
    schema = resolved(schema, root)
    if not isinstance(schema, Mapping):
        return "anything"
    if "const" in schema:
        return _json(schema["const"])
    if isinstance(schema.get("enum"), list):
        return _cut(" | ".join(_json(each) for each in schema["enum"]), 300)
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return " | ".join(dict.fromkeys(_brief(each, root, depth) for each in schema[key]))
    kind = schema.get("type")
    if kind == "object" or (kind is None and "properties" in schema):
        return _object(schema, root, depth)
    if kind == "array":
        return f"[{_brief(schema['items'], root, depth - 1)}, …]" if "items" in schema and depth else "array"
    words = " | ".join(kind) if isinstance(kind, list) else str(kind or "anything")
    return words + _bounds(schema)


def _object(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or not depth:
        return "object" if properties or schema.get("additionalProperties", True) is not False else "{}"
    required = schema.get("required") or ()
    parts = []
    for name, part in properties.items():
        default = f", default {_cut(_json(part['default']))}" if isinstance(part, Mapping) and "default" in part else ""
        mark = "" if name in required else "?"
        parts.append(f"{_json(name)}{mark}: {_brief(part, root, depth - 1)}{default}")
    return "{" + ", ".join(parts) + "}"


def _bounds(schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" {low} to {high}"
    if low is not None:
        return f" at least {low}"
    return f" at most {high}" if high is not None else ""
