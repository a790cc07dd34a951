"""`refused`: what a typed config of the user's refuses, in plain words. No text of the validator's reaches a user.

It takes the plain mapping that describes one refusal, so that nothing here imports the validator.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_WANTED = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "string": "a string",
    "bool": "`true` or `false`",
    "list": "an array",
    "tuple": "an array",
    "set": "an array",
    "dict": "a table",
    "model": "a table",
    "dataclass": "a table",
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
}


def refused(error: Mapping[str, Any]) -> str:
    """One refusal of pydantic's as `must be a whole number, found a string`."""
    kind, value = error["type"], error["input"]
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        return f"must be {words} {error['ctx'][key]}, found {_found(value)}"
    if kind == "literal_error":
        return f"must be {error['ctx']['expected']}, found {_found(value)}"
    wanted = _WANTED.get(kind.partition("_")[0])
    if wanted is not None and kind.endswith(("_type", "_parsing", "_from_float", "_number")):
        return f"must be {wanted}, found {_found(value)}"
    message = str(error["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
    return f"is refused: {message[:1].lower()}{message[1:]}"


def _found(value: Any) -> str:
    if isinstance(value, bool | int | float):
        return f"`{str(value).lower()}`"
    kinds = ((str, "a string"), (dict, "a table"), (list | tuple, "an array"))
    return next((name for kind, name in kinds if isinstance(value, kind)), f"a {type(value).__name__}")
