"""How tools are told in words: signatures for people's formats, JSON for those that models were trained on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from runner.records.completion import ToolSpec
from runner.workflows.parsers.typed import json_types

_SAMPLES: Mapping[str, Any] = {"integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}, "null": None}


def signatures(specs: Sequence[ToolSpec]) -> str:
    """The tools as `name(a: string, b?: integer)` with what they do and what each argument is."""
    return "\n\n".join(_signature(spec) for spec in specs)


def as_json(specs: Sequence[ToolSpec]) -> str:
    """The tools as OpenAI `tools` entries, one a line."""
    return "\n".join(json.dumps(spec.wire(), ensure_ascii=False) for spec in specs)


def sample_arguments(spec: ToolSpec) -> dict[str, Any]:
    """Arguments that show the shape of a call: those that are required, or the first one."""
    properties = _properties(spec)
    wanted = [name for name in _required(spec) if name in properties] or list(properties)[:1]
    return {name: _sample(properties[name], spec.parameters) for name in wanted}


def _signature(spec: ToolSpec) -> str:
    required = _required(spec)
    properties = _properties(spec)
    taken = [
        f"{name}{'' if name in required else '?'}: {_kind(schema, spec.parameters)}"
        for name, schema in properties.items()
    ]
    lines = [f"{spec.name}({', '.join(taken)})"]
    lines += [f"  {line}".rstrip() for line in spec.description.strip().splitlines()]
    for name, schema in properties.items():
        told = [str(schema["description"]).strip()] if isinstance(schema, Mapping) and schema.get("description") else []
        if isinstance(schema, Mapping) and isinstance(schema.get("enum"), (list, tuple)):
            told.append(f"one of {', '.join(json.dumps(each, ensure_ascii=False) for each in schema['enum'])}")
        if told:
            lines.append(f"  - {name}: {'; '.join(told)}")
    return "\n".join(lines)


def _properties(spec: ToolSpec) -> Mapping[str, Any]:
    found = spec.parameters.get("properties")
    return found if isinstance(found, Mapping) else {}


def _required(spec: ToolSpec) -> list[str]:
    found = spec.parameters.get("required")
    return [str(each) for each in found] if isinstance(found, (list, tuple)) else []


def _kind(schema: Any, root: Mapping[str, Any]) -> str:
    types = json_types(schema, root)
    return " or ".join(sorted(types)) if types else "any"


def _sample(schema: Any, root: Mapping[str, Any]) -> Any:
    if isinstance(schema, Mapping) and isinstance(schema.get("enum"), (list, tuple)) and schema["enum"]:
        return schema["enum"][0]
    types = json_types(schema, root) or {"string"}
    return "…" if "string" in types else _SAMPLES.get(sorted(types)[0], "…")
