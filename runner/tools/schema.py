"""What a JSON Schema (2020-12) of a tool can be asked without a value: its faults, and what it surely allows.

Nothing is ever fetched: a `$ref` that leads outside its schema is a fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from runner.records.quick import quick

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")

_DEEPEST = 20
"""How far references are followed: a schema may refer to itself."""


@quick
class SchemaFault:
    """What is wrong with a schema, and the path to it. `near` is the word that was probably meant, or empty."""

    message: str
    path: tuple[str | int, ...] = ()
    near: str = ""


def compiled(schema: Mapping[str, Any]) -> Draft202012Validator:
    """The validator of `schema`, which fetches nothing."""
    from jsonschema import Draft202012Validator
    from referencing import Registry

    return Draft202012Validator(dict(schema), registry=Registry())


def schema_faults(schema: Mapping[str, Any]) -> list[SchemaFault]:
    """Why `schema` cannot be the parameters of a tool; empty if it can.

    It must be valid, describe an object, refer only to itself, hold patterns that compile and defaults that fit.
    """
    from jsonschema import Draft202012Validator

    found = []
    for error in Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(dict(schema)):
        found.append(_invalid(error))
    if found:
        return _once(found)
    kinds = types_of(schema, schema)
    if kinds is not None and "object" not in kinds:
        found.append(SchemaFault("the arguments of a tool are an object: `type` must be `object`", ("type",)))
    for path, part in subschemas(schema):
        found += _part_faults(part, path, schema)
    return _once(found) or _default_faults(schema)


def _once(found: list[SchemaFault]) -> list[SchemaFault]:
    """One fault for each place: `type` alone is checked by two branches of the metaschema."""
    return list({fault.path: fault for fault in reversed(found)}.values())[::-1]


def _invalid(error: Any) -> SchemaFault:
    from jsonschema.exceptions import best_match

    path = tuple(error.absolute_path)
    if path and path[-1] == "type" and isinstance(error.instance, str):
        near = get_close_matches(error.instance, TYPES, n=1)
        return SchemaFault(f"`{error.instance}` is not a JSON type", path, near[0] if near else "")
    inner = best_match(error.context) if error.context else None
    return SchemaFault(_short(inner.message if inner is not None else error.message), path)


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:199] + "…"


def _part_faults(part: Mapping[str, Any], path: tuple[str | int, ...], root: Mapping[str, Any]) -> list[SchemaFault]:
    found = []
    for key in ("$ref", "$dynamicRef"):
        reference = part.get(key)
        if isinstance(reference, str) and not _resolves(reference, root):
            found.append(SchemaFault(f"`{reference}` leads nowhere in this schema", (*path, key)))
    patterns = [((*path, "pattern"), part.get("pattern"))]
    keyed = part.get("patternProperties")
    patterns += [((*path, "patternProperties", name), name) for name in keyed] if isinstance(keyed, Mapping) else []
    for place, pattern in patterns:
        if isinstance(pattern, str):
            try:
                re.compile(pattern)
            except re.error as error:
                found.append(SchemaFault(f"`{pattern}` is not a regular expression: {error}", place))
    return found


def _default_faults(schema: Mapping[str, Any]) -> list[SchemaFault]:
    validator = compiled(schema)
    found = []
    for path, part in subschemas(schema):
        if "default" in part and not validator.evolve(schema={**part, **_shared(schema)}).is_valid(part["default"]):
            found.append(SchemaFault("this default does not fit its own schema", (*path, "default")))
    return found


def _shared(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: schema[key] for key in ("$defs", "definitions") if key in schema}


def subschemas(schema: Mapping[str, Any]) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """`schema` and every schema inside it, with the path to each."""
    yield (), schema
    for key, value in schema.items():
        inner: list[tuple[tuple[str | int, ...], Any]]
        if key in ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas"):
            inner = [((key, name), each) for name, each in value.items()] if isinstance(value, Mapping) else []
        elif key in ("allOf", "anyOf", "oneOf", "prefixItems"):
            inner = [((key, index), each) for index, each in enumerate(value)] if isinstance(value, Sequence) else []
        elif key in _SINGLE:
            inner = [((key,), value)]
        else:
            continue
        for head, each in inner:
            if isinstance(each, Mapping):
                yield from (((*head, *path), part) for path, part in subschemas(each))


_SINGLE = frozenset(
    {"items", "contains", "additionalProperties", "unevaluatedProperties", "unevaluatedItems"}
    | {"propertyNames", "not", "if", "then", "else"}
)


def _resolves(reference: str, root: Mapping[str, Any]) -> bool:
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT202012

    if _pointed(reference, root) is not True:
        return True
    identity = root.get("$id")
    base = identity if isinstance(identity, str) else ""
    registry = Registry().with_resource(base, DRAFT202012.create_resource(dict(root))).crawl()
    try:
        registry.resolver(base).lookup(reference)
    except (Unresolvable, ValueError):
        return False
    return True


def resolved(schema: Any, root: Mapping[str, Any]) -> Any:
    """What `schema` means when it is a reference into `root`, itself otherwise; True when it leads elsewhere."""
    for _ in range(_DEEPEST):
        if not isinstance(schema, Mapping) or "$ref" not in schema:
            return schema
        schema = _pointed(schema["$ref"], root)
    return True


def _pointed(reference: Any, root: Any) -> Any:
    if reference == "#":
        return root
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return True
    for part in reference[2:].split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if isinstance(root, Mapping) and key in root:
            root = root[key]
        elif isinstance(root, list) and key.isdigit() and int(key) < len(root):
            root = root[int(key)]
        else:
            return True
    return root


def types_of(schema: Any, root: Mapping[str, Any], depth: int = 0) -> frozenset[str] | None:
    """The JSON types that `schema` could allow, at most; None when it does not say. `number` includes `integer`."""
    schema = resolved(schema, root)
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return None
    known = [_declared(schema.get("type"))]
    values = values_of(schema, root)
    known.append(None if values is None else frozenset(_type_of(value) for value in values))
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if isinstance(branches, Sequence) and branches:
            known.append(_union([types_of(branch, root, depth + 1) for branch in branches]))
    for branch in schema.get("allOf") or ():
        known.append(types_of(branch, root, depth + 1))
    stated = [each for each in known if each is not None]
    return frozenset.intersection(*stated) if stated else None


def _declared(kind: Any) -> frozenset[str] | None:
    kinds = [kind] if isinstance(kind, str) else kind
    if not isinstance(kinds, (list, tuple)):
        return None
    return frozenset(kinds) | ({"integer"} if "number" in kinds else frozenset())


def _union(known: list[frozenset[str] | None]) -> frozenset[str] | None:
    if any(each is None for each in known):
        return None
    return frozenset().union(*(each for each in known if each is not None))


def _type_of(value: Any) -> str:
    if value is None:
        return "null"
    for kind, name in ((bool, "boolean"), (int, "integer"), (str, "string"), (Mapping, "object"), (list, "array")):
        if isinstance(value, kind):
            return name
    return "integer" if isinstance(value, float) and value.is_integer() else "number"


def values_of(schema: Any, root: Mapping[str, Any]) -> list[Any] | None:
    """The only values that `schema` allows, from `enum` or `const`; None when it does not list them."""
    schema = resolved(schema, root)
    if not isinstance(schema, Mapping):
        return None
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return list(values) if isinstance(values, (list, tuple)) else None
