"""A quick yes for plain schemas: an object of texts, numbers and booleans, which is what most tools take.

`jsonschema` needs a dozen microseconds for such a call, and every rollout makes some. Only a yes is quick: whatever is
not plainly valid goes to the whole validator, which alone decides what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Check: TypeAlias = Callable[[dict[str, Any]], bool]

_SAYS_NOTHING = frozenset({"title", "description", "default", "examples", "$schema", "$comment"})
_OBJECT_KEYS = _SAYS_NOTHING | {"type", "properties", "required", "additionalProperties"}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def plain_check(schema: Mapping[str, Any]) -> Check | None:
    """A check that says True only for arguments that `schema` allows; None for a schema that is not plain."""
    properties = schema.get("properties", {})
    if not (schema.keys() <= _OBJECT_KEYS and schema.get("type") == "object" and isinstance(properties, Mapping)):
        return None
    if schema.get("additionalProperties", True) not in (True, False):
        return None
    types = {name: _types(part) for name, part in properties.items()}
    if None in types.values():
        return None
    required = frozenset(schema.get("required", ()))
    more = schema.get("additionalProperties", True)

    def check(arguments: dict[str, Any]) -> bool:
        if not required <= arguments.keys():
            return False
        for name, value in arguments.items():
            allowed = types.get(name)
            # By exact type: True is an int to isinstance, and no integer to JSON Schema.
            if type(value) not in allowed if allowed is not None else not more:
                return False
        return True

    return check


def _types(part: Any) -> tuple[type, ...] | None:
    if not (
        isinstance(part, Mapping) and part.keys() <= _SAYS_NOTHING | {"type"} and isinstance(part.get("type"), str)
    ):
        return None
    return _TYPES.get(part["type"])
