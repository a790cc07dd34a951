"""`surely_valid`: whether a JSON Schema is valid beyond doubt, told without the library that knows all of it.

Importing that library costs 40 ms, a seventh of what `validate` may take. Nearly every schema of a tool is made of a
few keywords; one that is not, or that might be wrong, goes to the library, which also finds the words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")


def surely_valid(schema: Any) -> bool:
    """True for a schema made of well-known keywords with values that they surely take; False says nothing."""
    if isinstance(schema, bool):
        return True
    return isinstance(schema, Mapping) and all(key in _TAKES and _TAKES[key](value) for key, value in schema.items())


def _any(value: Any) -> bool:
    return True


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _type(value: Any) -> bool:
    return isinstance(value, str) and value in _TYPES


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value) and len(set(value)) == len(value)


def _choices(value: Any) -> bool:
    return isinstance(value, list)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _schemas(value: Any) -> bool:
    return isinstance(value, Mapping) and all(surely_valid(each) for each in value.values())


_TAKES: dict[str, Callable[[Any], bool]] = {
    "type": _type,
    "properties": _schemas,
    "required": _names,
    "additionalProperties": surely_valid,
    "items": surely_valid,
    "enum": _choices,
    "const": _any,
    "default": _any,
    "examples": _choices,
    **dict.fromkeys(("title", "description", "format"), _text),
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _count),
    "uniqueItems": _flag,
}
