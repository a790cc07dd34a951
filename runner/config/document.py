"""The format described from the models: what `explain`, the schemas and `docs/format.md` say of each key.

The docstring under a field is its documentation. It is read from the source when somebody asks, since reading it at
import would cost every command a parse per section.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from runner.config.config import RolloutConfig
from runner.config.fields import members
from runner.config.kinds import ALL, Kinds
from runner.config.pages import tail
from runner.config.quantity import Unit, duration_text, money_text, size_text
from runner.config.reference import Location, Reference, SchemaText, Text
from runner.config.section import Affects, Section, Tag
from runner.records.quick import quick

_NAMED = {str: "string", int: "whole number", float: "number", bool: "true or false", dict: "table"}
_VALUES = {Reference: "reference", Location: "path", Text: "string or { file }", SchemaText: "table or { file }"}
_QUANTITY_TEXTS: dict[str, Callable[[Any], str]] = {
    "duration": duration_text,
    "money": money_text,
    "size": size_text,
}
_SPECIAL = {
    ("ModelSection", "concurrency"): "number or table",
    ("ModelSection", "return_token_ids"): '"auto", true or false',
    ("ModelSection", "api_key"): "{ env }",
    ("ModelSection", "headers"): "table of string or { env }",
    ("ServeSection", "api_key"): "{ env }",
    ("ChatSection", "stream"): '"auto", true or false',
    ("LimitsSection", "on_limit"): '"score", "ungraded" or { reward }',
    ("CallTool", "parameters"): 'table or "signature"',
    ("ToolTest", "expect"): "value or { contains, equals, matches, error }",
    ("GraderTest", "expect"): "number or { min, max }",
    ("ContainsGrader", "expect"): "string or array of strings",
    ("CommandGrader", "score"): '"exit", { regex } or { junit }',
    ("SandboxSection", "env"): "table of string or { env }",
    ("RolloutExpect", "reward"): "number or { min, max }",
    ("RolloutExpect", "tool_calls"): "array of string or { tool, args }",
    ("RolloutTest", "row"): "table or whole number",
    ("SamplingSection", "seed"): '"per-attempt" or whole number',
    ("WorkflowSection", "agent"): "chat, tools, react, coding, strands, reference or name",
    ("WorkflowSection", "parser"): "name, reference or { format, call, regex, instructions }",
}


@quick
class Entry:
    """One key of the format. `key` is dotted, with NAME for a name of the user's and `[]` for array elements."""

    key: str
    type: str
    default: str
    affects: Affects
    doc: str


@cache
def field_docs(model: type[Section]) -> dict[str, str]:
    """The docstring under each attribute of `model` and of what it inherits, white space folded."""
    docs: dict[str, str] = {}
    for owner in reversed(model.__mro__):
        if not (issubclass(owner, Section) and owner is not Section):
            continue
        body = _classes(owner.__module__).get(owner.__name__, [])
        for before, after in pairwise(body):
            if (
                isinstance(before, ast.AnnAssign)
                and isinstance(before.target, ast.Name)
                and isinstance(after, ast.Expr)
            ):
                value = after.value
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    docs[before.target.id] = " ".join(value.value.split())
    return docs


@cache
def _classes(module: str) -> dict[str, list[ast.stmt]]:
    import sys

    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node.body for node in tree.body if isinstance(node, ast.ClassDef)}


def class_doc(model: type[Section]) -> str:
    """The docstring of a section, white space folded."""
    return " ".join((model.__doc__ or "").split())


def type_text(model: type[Section], name: str, info: FieldInfo) -> str:
    """What a value of the field is, in the words of the docs."""
    for owner in model.__mro__:
        special = _SPECIAL.get((owner.__name__, name))
        if special is not None:
            return special
    unit = _unit(info.annotation, info.metadata)
    return unit or _annotation_text(info.annotation)


def _unit(annotation: Any, metadata: list[Any]) -> str | None:
    for one in metadata:
        if isinstance(one, Unit):
            return one.name
    for inner in get_args(annotation):
        if hasattr(inner, "__metadata__"):
            found = _unit(None, list(inner.__metadata__))
            if found:
                return found
    return None


def _annotation_text(annotation: Any) -> str:
    texts: list[str] = []
    for one in members(annotation):
        origin = get_origin(one)
        if origin is Literal:
            texts.append(" | ".join(str(word).lower() if word is True else str(word) for word in get_args(one)))
        elif origin is tuple:
            texts.append(_array_text(get_args(one)))
        elif origin is dict:
            texts.append(f"table of {_annotation_text(get_args(one)[1])}")
        elif one is Any:
            texts.append("any value")
        else:
            texts.append(_VALUES.get(one) or _NAMED.get(one) or "table")
    text = " or ".join(dict.fromkeys(texts))
    return "table" if text == "table of any value" else text


def _array_text(inner: tuple[Any, ...]) -> str:
    if Ellipsis not in inner:
        return "[low, high]"
    text = _annotation_text(inner[0])
    return {"any value": "array", "string": "array of strings", "table": "array of tables"}.get(
        text, f"array of {text}"
    )


def default_text(info: FieldInfo, value: Any = PydanticUndefined) -> str:
    """The default as the file would write it; empty where there is none, `required` where one must be given."""
    if value is PydanticUndefined:
        if info.is_required():
            return "required"
        value = info.get_default(call_default_factory=True)
    return value_text(value, _unit(info.annotation, info.metadata))


def value_text(value: Any, unit: str | None = None) -> str:
    """A value as the file would write it; empty for None and for a section's whole default."""
    if value is None or isinstance(value, Section):
        return ""
    if unit is not None and isinstance(value, int | float):
        return f'"{_QUANTITY_TEXTS[unit](value)}"'
    if isinstance(value, Text | Location | Reference | SchemaText):
        value = value.said()
    return toml_text(value)


def toml_text(value: Any) -> str:
    """A plain value as inline TOML."""
    import json

    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, dict):
        items = ", ".join(f"{_key(str(key))} = {toml_text(inner)}" for key, inner in value.items())
        return f"{{ {items} }}" if items else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_text(inner) for inner in value)}]"
    return str(value)


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else f'"{key}"'


def describe() -> list[Entry]:
    """Every key of the format, in the order of the models. Graders and tools come once for all, then kind by kind."""
    return list(_entries(RolloutConfig, "", "operation"))


def _entries(model: type[Section], prefix: str, around: Affects) -> Iterator[Entry]:
    docs = field_docs(model)
    for name, info in model.model_fields.items():
        key = f"{prefix}{info.alias or name}"
        affects = next((tag.affects for tag in info.metadata if isinstance(tag, Tag)), around)
        inner, suffix = _inside(info.annotation)
        if not prefix and inner is None and suffix == ".NAME" and key in ALL:
            yield Entry(key, "tables", "", affects, docs[name])
            yield from _kinds(ALL[key], affects)
            continue
        default = "" if inner is not None and suffix else default_text(info)
        yield Entry(key, type_text(model, name, info), default, affects, docs[name])
        if inner is not None:
            yield from _entries(inner, f"{key}{suffix}.", affects)


def _kinds(kinds: Kinds, affects: Affects) -> Iterator[Entry]:
    prefix = f"{kinds.section}.NAME"
    told = set(kinds.without.model_fields)
    yield from _entries(kinds.without, f"{prefix}.", affects)
    for kind, model in kinds.models.items():
        for entry in _entries(model, f"{prefix}.", affects):
            name = entry.key.split(".")[2].partition("[")[0]
            if name not in told and name != kinds.key:
                key = entry.key.replace("NAME", f"NAME({kind})", 1)
                yield Entry(key, entry.type, entry.default, entry.affects, entry.doc)


def _inside(annotation: Any) -> tuple[type[Section] | None, str]:
    """The section behind a field and what stands between the field's key and its keys."""
    for one in members(annotation):
        origin = get_origin(one)
        if isinstance(one, type) and issubclass(one, Section):
            return one, ""
        if origin in (dict, tuple):
            inner = members(get_args(one)[1 if origin is dict else 0])
            suffix = ".NAME" if origin is dict else "[]"
            sections = [kind for kind in inner if isinstance(kind, type) and issubclass(kind, Section)]
            return (sections[0] if len(sections) == 1 and len(inner) == 1 else None), suffix
    return None, ""


def markdown() -> str:
    """`docs/format.md`."""
    lines = [_HEAD]
    section = None
    for entry in describe():
        top = entry.key.split(".")[0].split("[")[0]
        if entry.key == top and entry.type not in ("tables",) and top in ("schema", "extends"):
            section = _row_table(lines, section, "top")
        elif entry.key == top:
            section = _row_table(lines, section, top, entry.doc)
            if top not in ("env", "profiles"):
                continue
        lines.append(_row(entry))
    return "\n".join(lines) + "\n" + tail()


def _row_table(lines: list[str], section: str | None, new: str, doc: str = "") -> str:
    if section != new:
        title = "At the top of the file" if new == "top" else f"`[{new}]`"
        lines.extend(["", f"## {title}", ""])
        lines.extend([doc, ""] if doc else [])
        lines.extend(["| key | value | default | affects | |", "|---|---|---|---|---|"])
    return new


def _row(entry: Entry) -> str:
    cells = (f"`{entry.key}`", entry.type, f"`{entry.default}`" if entry.default else "", entry.affects, entry.doc)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


_HEAD = """# The format of `workflow.toml`

<!-- Generated from the models by `runner.config.document.markdown()`; a test compares. -->

Every key, what it takes, its default, and what changing it costs a finished run: `result` plays rollouts again, `grade`
grades them again, `operation` neither. `NAME` is a name of yours, `[]` an element of an array, `NAME(kind)` a grader or
a built-in tool of that kind. A reference is `"package.module:name"` or `"./file.py:name"`, a path is relative to the
file that says it, a duration is `"90s"`, `"5m"`, `"250ms"` or `"1h30m"`, money is `"0.25 USD"`, a size is `"64MiB"`,
`"512KiB"` or `"2MB"`. An unknown key is an error. What sets keys from outside the file stands at the
end, and so does a whole `[serve]`."""
