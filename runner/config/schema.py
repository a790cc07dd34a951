"""`schemas`: the JSON Schemas that stand in `schemas/`, generated from the models and from the records.

The models decide what a file may hold; the schema is for editors and other programs. What TOML cannot write (null) is
left out, what it writes with a unit is a pattern, and descriptions are the docstrings under the fields.
"""

from __future__ import annotations

from typing import Any

from pydantic.fields import FieldInfo

from runner.config.config import RolloutConfig
from runner.config.document import class_doc, field_docs, value_text
from runner.config.fields import field
from runner.config.graders import EXTRACTORS
from runner.config.kinds import ALL
from runner.config.parser import PARSERS
from runner.config.records import rollout_schema, summary_schema
from runner.config.reference import FILE_SCHEMA, REFERENCE_PATTERN
from runner.config.section import Section

DRAFT = "https://json-schema.org/draft/2020-12/schema"

_ON_LIMIT: dict[str, Any] = {
    "anyOf": [
        {"enum": ["score", "ungraded"]},
        {
            "type": "object",
            "properties": {"reward": {"type": "number"}},
            "required": ["reward"],
            "additionalProperties": False,
        },
    ]
}
_EXPECT: dict[str, Any] = {
    "if": {"type": "object"},
    "then": {"$ref": "#/$defs/Expect", "minProperties": 1, "maxProperties": 1},
}
_PARSER_TEXTS: list[dict[str, Any]] = [
    {"enum": list(PARSERS)},
    {"type": "string", "pattern": REFERENCE_PATTERN},
]
_BARE: dict[tuple[str, str], dict[str, Any]] = {
    ("concurrency", "Concurrency"): {"anyOf": [{"type": "integer", "minimum": 1}, {"$ref": "#/$defs/Concurrency"}]},
    ("on_limit", "OnLimit"): _ON_LIMIT,
    ("parser", "ParserSection"): {"anyOf": [*_PARSER_TEXTS, {"$ref": "#/$defs/ParserSection"}]},
}
"""What a key whose table may be written shorter accepts, by key and the table's model."""


def schemas() -> dict[str, dict[str, Any]]:
    """Every published schema by the name of its file."""
    return {
        "workflow.schema.json": workflow_schema(),
        "rollout.schema.json": {"$schema": DRAFT, **rollout_schema()},
        "summary.schema.json": {"$schema": DRAFT, **summary_schema()},
    }


def text(schema: dict[str, Any]) -> str:
    """A schema as its file holds it."""
    import json

    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def workflow_schema() -> dict[str, Any]:
    """The schema of `workflow.toml`, draft 2020-12."""
    schema = RolloutConfig.model_json_schema(by_alias=True)
    models = _models(RolloutConfig, {})
    definitions = schema.pop("$defs")
    definitions.pop("OnLimit")
    for name, definition in definitions.items():
        _describe(definition, models[name])
    _describe(schema, RolloutConfig)
    _exactly_one(definitions["Extract"])
    definitions["ToolTest"]["properties"]["expect"].update(_EXPECT)
    definitions["Expect"] = _expect_definition()
    _hints(schema, definitions)
    title = "osmosis-run workflow"
    return {"$schema": DRAFT, **schema, "title": title, "$defs": dict(sorted(definitions.items()))}


def _models(model: type[Section], found: dict[str, type[Section]]) -> dict[str, type[Section]]:
    """Every section reachable from `model`, by name."""
    if model.__name__ not in found:
        found[model.__name__] = model
        for info in model.model_fields.values():
            for inner in _sections(info.annotation):
                _models(inner, found)
    return found


def _sections(annotation: Any) -> list[type[Section]]:
    from typing import get_args

    if isinstance(annotation, type) and issubclass(annotation, Section):
        return [annotation]
    return [inner for one in get_args(annotation) for inner in _sections(one)]


def _describe(definition: dict[str, Any], model: type[Section]) -> None:
    """Descriptions, defaults as the file writes them, and no null."""
    docs = field_docs(model)
    definition["description"] = class_doc(model)
    definition.pop("title", None)
    for key, old in definition.get("properties", {}).items():
        found = field(model, key)
        assert found is not None
        name, info = found
        new = _bare(key, _without_null(old))
        new.pop("title", None)
        new["description"] = docs[name]
        _default(new, info)
        definition["properties"][key] = new


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" not in schema:
        return dict(schema)
    rest = {key: value for key, value in schema.items() if key != "anyOf"}
    members = [one for one in schema["anyOf"] if one != {"type": "null"}]
    return {**rest, **members[0]} if len(members) == 1 else {**rest, "anyOf": members}


def _bare(key: str, schema: dict[str, Any]) -> dict[str, Any]:
    for (name, model), bare in _BARE.items():
        if key == name and schema.get("$ref") == f"#/$defs/{model}":
            return {**{other: value for other, value in schema.items() if other != "$ref"}, **bare}
    return schema


def _default(schema: dict[str, Any], info: FieldInfo) -> None:
    import tomllib

    from runner.config.document import default_text

    schema.pop("default", None)
    if info.is_required():
        return
    written = default_text(info) if value_text(info.get_default(call_default_factory=True)) else ""
    if written not in ("", "{}", "[]"):
        schema["default"] = tomllib.loads(f"v = {written}")["v"]


def _exactly_one(definition: dict[str, Any]) -> None:
    definition["oneOf"] = [{"required": [key]} for key in EXTRACTORS]


def _expect_definition() -> dict[str, Any]:
    from runner.config.tools import Expect

    docs = field_docs(Expect)
    properties = {
        name: ({} if name == "equals" else {"type": "string"}) | {"description": docs[name]}
        for name in Expect.model_fields
    }
    return {
        "type": "object",
        "description": class_doc(Expect),
        "properties": properties,
        "additionalProperties": False,
    }


def _hints(schema: dict[str, Any], definitions: dict[str, Any]) -> None:
    """What Taplo fills in when a table is begun, and the schemas that may come from a file."""
    schema["x-taplo"] = {"initKeys": ["workflow", "model", "graders"]}
    definitions["CallTool"]["x-taplo"] = {"initKeys": ["call"]}
    definitions["ResourceSection"]["x-taplo"] = {"initKeys": ["open"]}
    for kinds in ALL.values():
        for model in kinds.models.values():
            definition = definitions[model.__name__]
            definition["x-taplo"] = {"initKeys": definition["required"]}
    properties = definitions["JsonSchemaGrader"]["properties"]
    properties["schema"]["anyOf"] = [FILE_SCHEMA, {"type": "object"}]
