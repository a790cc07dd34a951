"""`Arguments`: from the JSON text that a model wrote to the arguments of a tool.

Compiled once for each tool of a plan. Whatever is wrong is one `BadCall` whose sentence the model can act on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import Any

from runner.tools.complaint import complaint
from runner.tools.plain import plain_check
from runner.tools.schema import compiled, resolved

_DEEPEST = 50
"""How deep defaults are looked for: a schema may refer to itself."""


class BadCall(Exception):
    """A tool call that cannot be run. `sentence` tells the model what to change."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


class _Unreadable(Exception):
    """Text that is not the JSON we take; the message follows 'the arguments'."""


class Arguments:
    """The arguments of one tool, by its JSON Schema (2020-12). Safe to share; `format` is not enforced."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = deepcopy(dict(schema))
        self._validator = compiled(self._schema)
        self._plain = plain_check(self._schema)

    def read(self, raw: str) -> dict[str, Any]:
        """The arguments in `raw`, defaults filled in, a fresh object on each call. Raises `BadCall`.

        Nothing at all is `{}`, and an object that was encoded twice is taken for what it was meant to be.
        """
        try:
            arguments = _decoded(raw)
        except _Unreadable as error:
            raise BadCall(f"The arguments {error}. Send a JSON object.{self._shape()}") from None
        self._filled(self._schema, arguments, 0)
        if self._plain is not None and self._plain(arguments):
            return arguments
        if not self._validator.is_valid(arguments):
            raise BadCall(complaint(self._validator, self._schema, arguments))
        return arguments

    def _shape(self) -> str:
        from runner.tools.complaint import shape

        return f" Expected: {shape(self._schema)}"

    def _filled(self, schema: Any, value: Any, depth: int) -> Any:
        """`value`, in place, with the defaults of `schema`; 3.0 for an integer becomes 3, as JSON Schema sees it."""
        if not isinstance(value, dict | list | float):
            return value
        schema = resolved(schema, self._schema)
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return value
        if isinstance(value, float):
            return int(value) if schema.get("type") == "integer" and value.is_integer() else value
        if isinstance(value, dict):
            self._fill_object(schema, value, depth)
        elif isinstance(value, list) and "items" in schema:
            start = len(schema.get("prefixItems", ()))
            value[start:] = [self._filled(schema["items"], each, depth + 1) for each in value[start:]]
        for branch in _certain(schema):
            value = self._filled(branch, value, depth + 1)
        return value

    def _fill_object(self, schema: Mapping[str, Any], value: dict[str, Any], depth: int) -> None:
        for name, part in (schema.get("properties") or {}).items():
            if name in value:
                value[name] = self._filled(part, value[name], depth + 1)
            elif isinstance(part, Mapping) and "default" in part:
                value[name] = deepcopy(part["default"])


def _certain(schema: Mapping[str, Any]) -> list[Any]:
    """The branches that surely apply: all of `allOf`, and the one that is not null of an optional."""
    branches = list(schema.get("allOf") or ())
    optional = [each for each in schema.get("anyOf") or () if each != {"type": "null"}]
    return branches + (optional if len(optional) == 1 else [])


def _decoded(raw: str) -> dict[str, Any]:
    if not raw.strip():
        return {}
    value = _loads(raw)
    if isinstance(value, str):  # some models encode the object, and then the text once more
        try:
            value = _loads(value) if value.strip() else {}
        except _Unreadable:
            raise _Unreadable("are a JSON string, not an object") from None
    if not isinstance(value, dict):
        raise _Unreadable(f"are {_NAMES[type(value)]}, not an object")
    return value


_NAMES = {
    list: "a JSON array",
    str: "a JSON string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    type(None): "`null`",
}


def _loads(raw: str) -> Any:
    try:
        return _decoder().decode(raw)
    except json.JSONDecodeError as error:
        raise _Unreadable(f"are not valid JSON: {_where(error)}") from None
    except RecursionError:
        raise _Unreadable("are nested too deeply") from None
    except ValueError:  # an integer of more digits than Python converts
        raise _Unreadable("hold a number with too many digits") from None


@cache
def _decoder() -> json.JSONDecoder:
    # Made once: `json.loads` makes a new one for each call that has hooks.
    return json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant, parse_float=_finite)


def _where(error: json.JSONDecodeError) -> str:
    reason = error.msg[0].lower() + error.msg[1:]
    if error.pos >= len(error.doc.rstrip()):
        return f"{reason}; the text ends too early, after {_around(error.doc, len(error.doc))}"
    return f"{reason} at line {error.lineno} column {error.colno}, at {_around(error.doc, error.pos + 15)}"


def _around(text: str, end: int) -> str:
    return json.dumps(text[max(0, end - 30) : end], ensure_ascii=False)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Unreadable(f"give `{twice[:80]}` twice")
    return found


def _constant(word: str) -> Any:
    raise _Unreadable(f"hold `{word}`, which is no JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise _Unreadable(f"hold `{digits[:40]}`, which is too large a number")
    return value
