"""From the signature of a callable to a tool's JSON Schema, and from JSON back to what its hints ask for.

pydantic knows the JSON form of every type; what is ours is the frame around it: names, docstrings, injected
parameters, and an error that names the parameter at fault.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from runner.records.completion import ToolSpec
from runner.tools.docstring import read
from runner.tools.misfit import Misfit, misfits
from runner.tools.parameters import UNKNOWN, Parameter, SignatureError, docstring_of, name_of, parameters

__all__ = ["Misconverted", "Misfit", "SignatureError", "converters", "derive", "misfits"]


class Misconverted(Exception):
    """An argument that fits the schema but not the hint: a date on the 31st of June. The message is for the model."""


def derive(function: Callable[..., Any], *, injected: Collection[str] = ()) -> ToolSpec:
    """The spec of `function`: name, first paragraph of the docstring, JSON Schema (2020-12) of the parameters.

    Parameters in `injected` are left out, and so are those a `functools.partial` has fixed by keyword. Raises
    `SignatureError` for a parameter that has no JSON form or that no call by keyword can reach.
    """
    docstring = read(docstring_of(function))
    offered = [each for each in parameters(function, injected) if each.name not in injected]
    for each in offered:
        _reachable(each)
    schemas, definitions = _schemas(offered)
    for each in offered:
        said = _annotated(each.hint) or docstring.parameters.get(each.name)
        if said and "description" not in schemas[each.name]:
            schemas[each.name] = {**schemas[each.name], "description": said}
        _set_default(schemas[each.name], each, definitions)
    parts: dict[str, Any] = {"type": "object", "properties": schemas}
    if required := [each.name for each in offered if each.required]:
        parts["required"] = required
    parts["additionalProperties"] = False
    if definitions:
        parts["$defs"] = definitions
    return ToolSpec(re.sub(r"[^A-Za-z0-9_-]+", "", name_of(function)) or "tool", docstring.summary, parts)


def _reachable(each: Parameter) -> None:
    if each.kind == "positional":
        raise SignatureError(f"`{each.name}` is positional-only, but a model names its arguments", each.name)
    if each.kind in ("args", "kwargs"):
        stars = "*" if each.kind == "args" else "**"
        raise SignatureError(
            f"`{stars}{each.name}` has no schema: a model must know the names; write the parameters out, "
            "or write `parameters` as a JSON Schema",
            each.name,
        )
    if each.trouble:
        raise SignatureError(f"the hint of `{each.name}` cannot be resolved: {each.trouble}", each.name)
    if type(each.default).__name__ == "FieldInfo":
        raise SignatureError(
            f"the default of `{each.name}` is a pydantic Field; write `Annotated[..., Field(...)]` and a plain default",
            each.name,
        )


def _schemas(offered: Sequence[Parameter]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of each parameter and their shared definitions."""
    from pydantic import TypeAdapter

    inputs: list[tuple[str, Any, TypeAdapter[Any]]] = []
    for each in offered:
        adapter = _adapter(each)
        inputs.append((each.name, "validation", adapter))
    found, shared = TypeAdapter.json_schemas(inputs)
    schemas = {name: untitled(dict(schema)) for (name, _), schema in found.items()}
    return schemas, {name: untitled(each) for name, each in shared.get("$defs", {}).items()}


def _adapter(each: Parameter) -> Any:
    """The adapter of one parameter, proven to have a JSON form. Raises `SignatureError`."""
    from pydantic import PydanticUserError, TypeAdapter
    from pydantic.errors import PydanticSchemaGenerationError

    hint = Any if each.hint is UNKNOWN else each.hint
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(hint)
        adapter.json_schema()
    except (PydanticUserError, PydanticSchemaGenerationError):
        raise SignatureError(
            f"the hint of `{each.name}`, `{_shown(hint)}`, has no JSON form; "
            "use a type that JSON has, or inject this parameter",
            each.name,
        ) from None
    return adapter


def _shown(hint: Any) -> str:
    return hint.__qualname__ if isinstance(hint, type) and not typing.get_args(hint) else str(hint)


def untitled(schema: Any) -> Any:
    """`schema` without the titles that pydantic makes of names: they tell a model nothing and cost tokens."""
    if isinstance(schema, list):
        return [untitled(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _part(key, value) for key, value in schema.items() if key != "title" or not isinstance(value, str)}


def _part(key: str, value: Any) -> Any:
    if key in ("properties", "$defs", "patternProperties") and isinstance(value, dict):
        return {name: untitled(each) for name, each in value.items()}
    return value if key in ("default", "const", "enum", "examples") else untitled(value)


def _annotated(hint: Any) -> str | None:
    """The text in `Annotated[int, "how many"]` or `Annotated[int, Doc("how many")]`."""
    for note in getattr(hint, "__metadata__", ()):
        said = note if isinstance(note, str) else getattr(note, "documentation", None)
        if isinstance(said, str):
            return " ".join(said.split())
    return None


def _set_default(schema: dict[str, Any], each: Parameter, definitions: dict[str, Any]) -> None:
    """Say the default if JSON can and it fits: that of `x: str = None` does not; filled in, it would break calls."""
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    if each.default is UNKNOWN:
        return
    try:
        default = to_jsonable_python(each.default)
    except (PydanticSerializationError, ValueError):
        return
    if _fits(default, schema, definitions):
        schema["default"] = default


_SIMPLE: dict[str, type] = {"string": str, "integer": int, "number": float, "boolean": bool}


def _fits(default: Any, schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> bool:
    if schema.keys() <= {"type", "description"} and type(default) is _SIMPLE.get(str(schema.get("type"))):
        return True  # the usual case, and the validator's library is dear to import
    from jsonschema import Draft202012Validator

    return Draft202012Validator({**schema, "$defs": definitions}).is_valid(default)


def converters(function: Callable[..., Any], *, injected: Collection[str] = ()) -> dict[str, Callable[[Any], Any]]:
    """For each parameter whose hint is more than JSON (a date, an enum, a dataclass): from the JSON value to it.

    A converter raises `Misconverted`. A hint that pydantic does not know gets none: the function takes what JSON gives.
    """
    from pydantic import PydanticUserError
    from pydantic.errors import PydanticSchemaGenerationError

    found: dict[str, Callable[[Any], Any]] = {}
    try:
        known = parameters(function, injected)
    except SignatureError:
        return found
    for each in known:
        if each.name in injected or each.hint is UNKNOWN or each.kind != "named" or is_plain(each.hint):
            continue
        try:
            found[each.name] = _converter(each)
        except (PydanticUserError, PydanticSchemaGenerationError):
            continue
    return found


def _converter(each: Parameter) -> Callable[[Any], Any]:
    from pydantic import TypeAdapter, ValidationError

    # `x: date = None` is the old way to write an optional date.
    hint: Any = typing.Optional[each.hint] if each.default is None else each.hint  # noqa: UP045
    adapter: TypeAdapter[Any] = TypeAdapter(hint)

    def convert(value: Any) -> Any:
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            path = ".".join(str(part) for part in (each.name, *first["loc"]))
            raise Misconverted(f"`{path}`: {first['msg']}.") from None

    return convert


_PLAIN = {str, int, float, bool, type(None), dict, list, object, Any}
_PLAIN_HOLDERS = {list, dict, typing.Union, types.UnionType, Sequence, Mapping, Collection, Iterable}


def is_plain(hint: Any) -> bool:
    """Whether a value straight from JSON is already what `hint` asks for."""
    if isinstance(hint, typing.TypeVar):
        return True
    origin = typing.get_origin(hint)
    if origin is None:
        return hint in _PLAIN or hint in _PLAIN_HOLDERS or _is_plain_record(hint)
    if origin is typing.Literal:
        return all(
            isinstance(each, (str, int, bool, type(None))) and not _is_enum(each) for each in typing.get_args(hint)
        )
    if origin is typing.Annotated:
        return is_plain(typing.get_args(hint)[0])
    return origin in _PLAIN_HOLDERS and all(is_plain(each) for each in typing.get_args(hint))


def _is_enum(value: Any) -> bool:
    from enum import Enum

    return isinstance(value, Enum)


def _is_plain_record(hint: Any) -> bool:
    from typing_extensions import is_typeddict

    if not is_typeddict(hint):
        return False
    try:
        return all(is_plain(_unqualified(each)) for each in typing.get_type_hints(hint, include_extras=True).values())
    except NameError:
        return False


def _unqualified(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) in (typing.Required, typing.NotRequired) else hint
