"""Values with a grammar of their own: regular expressions, JSON Schemas, choices, rubrics, datasets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from runner.config.checks.checking import Checking
from runner.config.checks.plain_schema import surely_valid
from runner.config.graders import AnswerGrader, ChoiceGrader, JsonSchemaGrader, RegexGrader, RubricGrader
from runner.config.names import dotted
from runner.config.parser import REGEX_GROUPS
from runner.config.reference import SchemaText
from runner.config.tools import CallTool, ToolTest
from runner.diag.diagnostic import Path
from runner.diag.inside import inside_string
from runner.diag.suggest import nearest

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_KEYWORDS = (
    "properties", "required", "additionalProperties", "patternProperties", "propertyNames", "minProperties",
    "maxProperties", "items", "prefixItems", "contains", "minItems", "maxItems", "uniqueItems", "minLength",
    "maxLength", "pattern", "format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "enum", "const", "default", "description", "title", "examples", "anyOf", "allOf", "oneOf", "not", "then", "else",
    "if", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "minContains",
    "maxContains", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema",
    "type", "definitions", "dependencies", "additionalItems",
)  # fmt: skip
_REGEX = {
    "missing ), unterminated subpattern": ("a group is never closed", "add `)`, or write `\\(` for the character"),
    "unbalanced parenthesis": ("a `)` closes nothing", "remove it, or write `\\)` for the character"),
    "multiple repeat": ("two repeats follow one another", "remove one, or write `\\` before it for the character"),
    "nothing to repeat": ("nothing stands before the repeat", "write `\\` before it for the character"),
    "unterminated character set": ("a `[` is never closed", "add `]`, or write `\\[` for the character"),
}
"""The usual slips, by the words of `re`: what is wrong, and what to do."""


def check_contents(check: Checking) -> None:
    """Every pattern compiles, every schema is one, and every list holds what makes sense of it."""
    for name, grader in check.config.graders.items():
        path: Path = ("graders", name)
        if isinstance(grader, AnswerGrader) and grader.extract is not None:
            _extract(check, (*path, "extract"), grader)
        if isinstance(grader, RegexGrader):
            regex_of(check, (*path, "pattern"), grader.pattern)
        elif isinstance(grader, ChoiceGrader):
            _choices(check, (*path, "choices"), grader.choices)
        elif isinstance(grader, JsonSchemaGrader):
            _json_schema(check, (*path, "schema"), grader.schema_text)
        elif isinstance(grader, RubricGrader):
            _criteria(check, (*path, "criteria"), grader)
        _grader_tests(check, path)
    _parser(check)
    for name, server in check.config.mcp.items():
        _tool_tests(check, ("mcp", name, "tests"), server.tests)
    for name, tool in check.config.tools.items():
        _tool_tests(check, ("tools", name, "tests"), tool.tests)
        if isinstance(tool, CallTool) and not isinstance(tool.parameters, str):
            _parameters(check, ("tools", name, "parameters"), tool.parameters)
    _dataset(check)


def regex_of(check: Checking, path: Path, pattern: str) -> re.Pattern[str] | None:
    """The compiled pattern, or None and a finding at the character that spoils it."""
    try:
        return re.compile(pattern)
    except re.error as error:
        place = check.place(path)
        where = inside_string(place, error.pos) if place is not None and error.pos is not None else None
        fact, label = _REGEX.get(error.msg, (error.msg, "here"))
        check.report("bad-regex", path, f"`{pattern}` is not a regular expression: {fact}", label, place=where)
    except (OverflowError, RecursionError):
        check.report("bad-regex", path, "this regular expression is too large")
    return None


def _parser(check: Checking) -> None:
    section, path = check.config.workflow.parser, ("workflow", "parser", "regex")
    if section is None or section.regex is None:
        return
    compiled = regex_of(check, path, section.regex)
    if compiled is None:
        return
    if "name" not in compiled.groupindex:
        label = "write `(?P<name>…)` around the tool's name"
        check.report("bad-regex", path, "the pattern has no group `name`", label)
    for group in compiled.groupindex:
        if group not in REGEX_GROUPS:
            message = f"the group `{group}` is never read"
            check.report("bad-regex", path, message, f"groups: {', '.join(REGEX_GROUPS)}", severity="warning")


def _extract(check: Checking, path: Path, grader: AnswerGrader) -> None:
    extract = grader.extract
    assert extract is not None
    if extract.regex is None:
        if extract.group is not None:
            check.report("misplaced-key", (*path, "group"), "`group` goes with `regex` only", "remove it", key=True)
        return
    compiled = regex_of(check, (*path, "regex"), extract.regex)
    group = extract.group
    if compiled is None or group is None:
        return
    if group not in compiled.groupindex and not (isinstance(group, int) and 0 <= group <= compiled.groups):
        names = ", ".join([f"0 to {compiled.groups}", *compiled.groupindex])
        check.report("bad-regex", (*path, "group"), f"the pattern has no group `{group}`", f"groups: {names}")


def _choices(check: Checking, path: Path, choices: tuple[str, ...]) -> None:
    if not 2 <= len(choices) <= 26:
        check.report(
            "out-of-range", path, f"`{dotted(path)}` must have 2 to 26 values, found {len(choices)}", "2 to 26"
        )
    _unique(check, path, choices, "choices")


def _unique(check: Checking, path: Path, names: tuple[str, ...], noun: str, field: str | None = None) -> None:
    first: dict[str, int] = {}
    for index, name in enumerate(names):
        if name in first:
            where = [(*path, at) if field is None else (*path, at, field) for at in (first[name], index)]
            related = [(check.place(where[0]), "first use")]
            check.report("duplicate-name", where[1], f"two of the {noun} are `{name}`", "second use", related=related)
        first.setdefault(name, index)


def _criteria(check: Checking, path: Path, grader: RubricGrader) -> None:
    _unique(check, path, tuple(one.id for one in grader.criteria), "criteria", "id")
    for index, one in enumerate(grader.criteria):
        for key, kind in (("levels", "likert"), ("min", "numeric"), ("max", "numeric")):
            if key in one.model_fields_set and one.type != kind:
                message = f"`{key}` goes with `{kind}` only, and `{one.id}` is `{one.type}`"
                check.report("misplaced-key", (*path, index, key), message, "remove it", key=True)
        if one.type == "numeric" and one.min >= one.max:
            message = f"`{one.id}` goes from {one.min:g} to {one.max:g}"
            check.report("out-of-range", (*path, index), message, "`min` must be less")


def _tool_tests(check: Checking, path: Path, tests: Sequence[ToolTest]) -> None:
    for index, test in enumerate(tests):
        if test.expect.matches is not None:
            regex_of(check, (*path, index, "expect", "matches"), test.expect.matches)


def _grader_tests(check: Checking, path: Path) -> None:
    for index, test in enumerate(check.config.graders[str(path[1])].tests):
        where = (*path, "tests", index)
        if (test.output is None) == (test.messages is None):
            label = "add one" if test.output is None else "found both"
            message = "a grader test takes exactly one of `output`, `messages`"
            check.report("one-of", where, message, label)
        if test.expect.min is None and test.expect.max is None:
            check.report("one-of", (*where, "expect"), "`expect` takes a number, or `min`, `max` or both", "add one")


def _dataset(check: Checking) -> None:
    dataset, path = check.config.dataset, ("dataset", "path")
    if dataset.path is None:
        return
    file = dataset.path.path
    if file.exists() and not file.is_dir():
        return  # whoever opens it says what is wrong with a pipe or a device
    if file.is_dir():
        check.report("dataset-missing", path, f"the dataset `{dataset.path.text}` is a folder", "name a file in it")
    else:
        names = [entry.name for entry in file.parent.iterdir()] if file.parent.is_dir() else []
        near = nearest(file.name, names)
        label = f"did you mean `{FilePath(dataset.path.text).with_name(near)}`?" if near else ""
        check.report("dataset-missing", path, f"there is no dataset `{dataset.path.text}`", label)
    check.loaded.broken.add(path)  # whoever would read it need not say so again


def _json_schema(check: Checking, path: Path, schema: SchemaText) -> None:
    if schema.file is not None:
        problems = _schema_problems(schema.table)
        for inner, message, label, _ in problems[:1]:
            note = f"at {_pointer(inner)} of `{schema.file.text}`"
            check.report("bad-json-schema", (*path, "file"), message, label, notes=[note])
    else:
        _report_schema(check, path, schema.table)


def _parameters(check: Checking, path: Path, schema: Mapping[str, Any]) -> None:
    kind = schema.get("type", "object" if "properties" not in schema else None)
    if kind is None or (isinstance(kind, str) and kind != "object" and kind in _TYPES):
        where = (*path, "type") if "type" in schema else path
        message = f"`{'.'.join(map(str, path))}` must describe an object: a tool's arguments have names"
        check.report("bad-json-schema", where, message, 'add `type = "object"`' if kind is None else 'write `"object"`')
        return
    _report_schema(check, path, schema)


def _report_schema(check: Checking, path: Path, schema: Mapping[str, Any]) -> None:
    for inner, message, label, key in _schema_problems(schema):
        where = (*path, *inner)
        check.report("bad-json-schema", where, message, label, key=key, notes=[f"at {_pointer(inner)}"])
    for inner, word, near in _slips(schema, ()):
        message = f"`{word}` is no keyword of JSON Schema, so it checks nothing"
        check.report(
            "bad-json-schema", (*path, *inner), message, f"did you mean `{near}`?", key=True, severity="warning"
        )


def _schema_problems(schema: Mapping[str, Any]) -> list[tuple[Path, str, str, bool]]:
    """What makes `schema` none: (path in it, message, label, whether the key is to blame)."""
    if surely_valid(schema):
        return []
    from jsonschema import Draft202012Validator

    errors = list(Draft202012Validator(Draft202012Validator.META_SCHEMA).iter_errors(schema))
    problems: dict[Path, tuple[Path, str, str, bool]] = {}
    for error in errors:
        inner = tuple(error.absolute_path)
        problems.setdefault(inner, (inner, *_schema_words(inner, error.instance), False))
    for inner, target in _references(schema, ()):
        if not _resolves(schema, target):
            label = "only `#/…` within the schema is followed"
            problems.setdefault(inner, (inner, f"`{target}` is nowhere in this schema", label, False))
    return list(problems.values())


def _schema_words(inner: Path, value: Any) -> tuple[str, str]:
    keyword = inner[-1] if inner else "schema"
    within_type = keyword == "type" or (len(inner) > 1 and inner[-2] == "type" and isinstance(keyword, int))
    message = f"not a valid JSON Schema (draft 2020-12): `{keyword}` cannot have this value"
    if within_type and isinstance(value, str):
        near = nearest(value, _TYPES)
        cure = f"did you mean `{near}`?" if near else f"types: {', '.join(_TYPES)}"
        return "not a valid JSON Schema (draft 2020-12)", f"`{value}` is not a JSON type; {cure}"
    wanted = _WANTED.get(str(keyword), "")
    return message, f"must be {wanted}" if wanted else "a schema must be a table" if not isinstance(value, dict) else ""


_WANTED = {
    "required": "an array of names, each once",
    "properties": "a table of schemas",
    "enum": "an array",
    "pattern": "a regular expression",
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), "a number"),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), "a whole number from 0"
    ),
    "multipleOf": "a number above 0",
    **dict.fromkeys(("anyOf", "allOf", "oneOf", "prefixItems"), "an array of schemas, not empty"),
    **dict.fromkeys(("description", "title", "format", "$ref"), "a string"),
    "uniqueItems": "`true` or `false`",
}


def _subschemas(schema: Any, path: Path) -> list[tuple[Path, Mapping[str, Any]]]:
    """Every schema directly in `schema`, with its path: what stands in `default` or `enum` is data, not schema."""
    found: list[tuple[Path, Any]] = []
    for key, value in schema.items() if isinstance(schema, Mapping) else ():
        if key in ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"):
            found += (
                [((*path, key, name), inner) for name, inner in value.items()] if isinstance(value, Mapping) else []
            )
        elif key in ("anyOf", "allOf", "oneOf", "prefixItems") and isinstance(value, list):
            found += [((*path, key, index), inner) for index, inner in enumerate(value)]
        elif key in ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"):
            found.append(((*path, key), value))
    return [(where, inner) for where, inner in found if isinstance(inner, Mapping)]


def _slips(schema: Mapping[str, Any], path: Path) -> list[tuple[Path, str, str]]:
    """Keys that are no keyword but nearly one."""
    found = []
    for key in schema:
        near = nearest(key, _KEYWORDS) if key not in _KEYWORDS and key[:1] not in ("$", "x") else None
        if near is not None:
            found.append(((*path, key), key, near))
    for where, inner in _subschemas(schema, path):
        found += _slips(inner, where)
    return found


def _references(schema: Mapping[str, Any], path: Path) -> list[tuple[Path, str]]:
    target = schema.get("$ref")
    found: list[tuple[Path, str]] = [((*path, "$ref"), target)] if isinstance(target, str) else []
    for where, inner in _subschemas(schema, path):
        found += _references(inner, where)
    return found


def _resolves(schema: Mapping[str, Any], target: str) -> bool:
    if not target.startswith("#"):
        return target.startswith("https://json-schema.org/")
    if target[1:2] not in ("", "/"):
        return True  # an anchor: the validator knows
    node: Any = schema
    for part in target[2:].split("/") if len(target) > 1 else []:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, Mapping) and name in node:
            node = node[name]
        elif isinstance(node, list) and name.isdigit() and int(name) < len(node):
            node = node[int(name)]
        else:
            return False
    return True


def _pointer(path: Path) -> str:
    return "#" + "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in path)
