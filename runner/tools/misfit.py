"""Where a callable and the JSON Schema written for it disagree, in both directions.

A clash of types is reported only when no value could satisfy both sides: a wrong finding would stop a file that works.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

from runner.records.quick import quick
from runner.tools.parameters import UNKNOWN, Parameter, SignatureError, parameters
from runner.tools.schema import types_of, values_of

MisfitKind: TypeAlias = Literal[
    "signature-extra",
    "signature-missing",
    "signature-required",
    "signature-type",
    "signature-inject",
    "signature-positional",
]


@quick
class Misfit:
    """One disagreement about `parameter`. `path_in_schema` leads to the key to point at, `()` to the schema itself.

    Kinds: signature-extra, a property that the function does not take; -missing, a required parameter that is no
    property; -required, one that is a property but optional there, without a default; -type, types that exclude each
    other; -inject, an injected name that the function does not take or that the model could set too; -positional, a
    parameter that no call by keyword can reach. `near` is the name that was probably meant, or empty.
    """

    kind: MisfitKind
    parameter: str
    message: str
    path_in_schema: tuple[str | int, ...] = ()
    near: str = ""


def misfits(function: Callable[..., Any], schema: Mapping[str, Any], injected: Collection[str] = ()) -> list[Misfit]:
    """All disagreements of `function` and `schema`, empty if they fit. Raises `SignatureError` without a signature."""
    taken = parameters(function, injected)
    properties = schema.get("properties")
    offered = properties if isinstance(properties, Mapping) else {}
    named = {each.name: each for each in taken if each.kind == "named"}
    found = _injected(injected, named, offered, open_ended=any(each.kind == "kwargs" for each in taken))
    if not any(each.kind == "kwargs" for each in taken):
        found += _extra(offered, {each.name: each for each in taken}, injected)
    for each in taken:
        if each.name not in injected:
            found += _parameter(each, schema, offered)
    return found


def _injected(
    injected: Collection[str], named: Mapping[str, Parameter], offered: Mapping[str, Any], *, open_ended: bool
) -> list[Misfit]:
    found = []
    for name in injected:
        if name not in named and not open_ended:
            near = _near(name, named)
            found.append(Misfit("signature-inject", name, f"the function takes no `{name}` to inject", (), near))
        if name in offered:
            message = f"`{name}` is injected, so the model must not be offered it"
            found.append(Misfit("signature-inject", name, message, ("properties", name)))
    return found


def _extra(offered: Mapping[str, Any], named: Mapping[str, Parameter], injected: Collection[str]) -> list[Misfit]:
    free = [name for name in named if name not in offered and name not in injected]
    return [
        Misfit(
            "signature-extra",
            name,
            f"the schema offers `{name}`, which the function does not take",
            ("properties", name),
            _near(name, free),
        )
        for name in offered
        if name not in named and name not in injected
    ]


def _parameter(each: Parameter, schema: Mapping[str, Any], offered: Mapping[str, Any]) -> list[Misfit]:
    if each.kind in ("args", "kwargs"):
        return []
    if each.kind == "positional":
        if not each.required and each.name not in offered:
            return []
        message = f"`{each.name}` is positional-only in the function, but a model names its arguments"
        return [Misfit("signature-positional", each.name, message)]
    required = schema.get("required")
    demanded = isinstance(required, (list, tuple)) and each.name in required
    if each.name not in offered:
        if not each.required or demanded or _composed(schema):
            return []
        message = f"the function requires `{each.name}`, which the schema does not have"
        return [Misfit("signature-missing", each.name, message, ("properties",) if offered else ())]
    path = ("properties", each.name)
    found = []
    has_default = isinstance(offered[each.name], Mapping) and "default" in offered[each.name]
    if each.required and not demanded and not has_default and not _composed(schema):
        message = f"the function requires `{each.name}`, but the schema neither requires it nor gives it a default"
        found.append(Misfit("signature-required", each.name, message, path))
    return found + _clash(each, offered[each.name], schema, path)


def _composed(schema: Mapping[str, Any]) -> bool:
    """Whether properties may be demanded from elsewhere than the top of the schema."""
    return any(
        key in schema for key in ("allOf", "anyOf", "oneOf", "$ref", "if", "dependentRequired", "dependentSchemas")
    )


def _clash(each: Parameter, offered: Any, schema: Mapping[str, Any], path: tuple[str | int, ...]) -> list[Misfit]:
    hinted = _hinted(each)
    if hinted is None:
        return []
    wanted, given = types_of(hinted, hinted), types_of(offered, schema)
    if wanted is not None and given is not None and not _python(wanted) & given:
        message = f"the function wants {_either(wanted)} for `{each.name}`, the schema gives {_either(given)}"
        pointed = (*path, "type") if isinstance(offered, Mapping) and "type" in offered else path
        return [Misfit("signature-type", each.name, message, pointed)]
    allowed, possible = values_of(hinted, hinted), values_of(offered, schema)
    if allowed and possible and not any(value in allowed for value in possible):
        message = f"no value that the schema allows for `{each.name}` is one that the function takes"
        return [Misfit("signature-type", each.name, message, path)]
    return []


def _hinted(each: Parameter) -> dict[str, Any] | None:
    from pydantic import PydanticUserError, TypeAdapter
    from pydantic.errors import PydanticSchemaGenerationError

    if each.hint is UNKNOWN:
        return None
    try:
        return TypeAdapter(each.hint).json_schema()
    except (PydanticUserError, PydanticSchemaGenerationError):
        return None


def _python(types: frozenset[str]) -> frozenset[str]:
    """What a Python parameter takes in JSON types: a bool is an int, an int will do for a float."""
    return types | {"boolean", "number"} if types & {"integer", "number"} else types


def _either(types: frozenset[str]) -> str:
    # "number" stands for every number, so its integers need no mention.
    names = sorted(types - {"integer"} if "number" in types else types)
    return " or ".join(f"`{name}`" for name in names)


def _near(name: str, names: Collection[str]) -> str:
    close = get_close_matches(name, list(names), n=1, cutoff=0.6)
    return close[0] if close else ""


__all__ = ["Misfit", "MisfitKind", "SignatureError", "misfits"]
