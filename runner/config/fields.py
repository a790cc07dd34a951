"""What a path of the file is, by the models: its field, its keys, what it affects. Nothing is built at import.

`Known` answers for tables, keyed tables (`tools.search.timeout`) and array elements alike; the keys of a
grader and of a tool depend on its kind, which is looked up in the tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from runner.config.config import RolloutConfig
from runner.config.kinds import ALL
from runner.config.section import Affects, Section, Tag
from runner.diag.diagnostic import Path


@dataclass(frozen=True)
class Known:
    """What stands at a path. `owner` and `info` are the model and field that declare it, None inside free tables.

    `table` is its model when it is a table with fixed keys, `values` the type of its values when keys are free.
    """

    annotation: Any
    affects: Affects
    owner: type[Section] | None = None
    attribute: str = ""
    info: FieldInfo | None = None

    @property
    def table(self) -> type[Section] | None:
        return next((one for one in _members(self.annotation) if _is_section(one)), None)

    @property
    def values(self) -> Any:
        """The type behind any key of a free table, or behind any index of an array; None for anything else."""
        for one in _members(self.annotation):
            if get_origin(one) is dict:
                return get_args(one)[1]
            if get_origin(one) is tuple:
                return get_args(one)[0]
        return None

    @property
    def default(self) -> Any:
        """The default, or `PydanticUndefined` where there is none."""
        return PydanticUndefined if self.info is None else self.info.get_default(call_default_factory=True)


def lookup(path: Path, tree: Mapping[str, Any]) -> Known | None:
    """What `path` is, or None when the format has no such path. `tree` decides the kinds of graders and tools."""
    known = Known(RolloutConfig, "operation")
    node: Any = tree
    for key in path:
        node = _child(node, key)
        step = _step(known, key, node)
        if step is None:
            return None
        known = step
    return known


def keys_of(path: Path, tree: Mapping[str, Any]) -> list[str]:
    """The keys the table at `path` may have, in the order of the format; empty for free tables and for values."""
    known = lookup(path, tree)
    return keys(known.table) if known is not None and known.table is not None else []


def keys(model: type[Section]) -> list[str]:
    """The keys of a table, as the file spells them."""
    return [info.alias or name for name, info in model.model_fields.items()]


def field(model: type[Section], key: str) -> tuple[str, FieldInfo] | None:
    """The attribute and field that `key` of the file is in `model`."""
    for name, info in model.model_fields.items():
        if (info.alias or name) == key:
            return name, info
    return None


def _step(known: Known, key: str | int, value: Any) -> Known | None:
    table = known.table
    if table is not None and isinstance(key, str):
        found = field(table, key)
        if found is None:
            return None
        name, info = found
        return Known(info.annotation, _affects(info.metadata, known.affects), table, name, info)
    if known.values is not None:
        return Known(_choose(known.values, value), known.affects, info=None)
    return Known(Any, known.affects) if _is_free(known.annotation) else None


def _choose(annotation: Any, value: Any) -> Any:
    """Of tables that differ by kind, the one whose kind the value names."""
    sections = [one for one in _members(annotation) if _is_section(one)]
    if len(sections) <= 1:
        return annotation
    return next(kinds.of(value) for kinds in ALL.values() if issubclass(sections[0], kinds.shared))


def _affects(metadata: list[Any], around: Affects) -> Affects:
    return next((one.affects for one in metadata if isinstance(one, Tag)), around)


def _child(node: Any, key: str | int) -> Any:
    if isinstance(node, Mapping):
        return node.get(key)
    if isinstance(node, list | tuple) and isinstance(key, int) and key < len(node):
        return node[key]
    return None


def _members(annotation: Any) -> list[Any]:
    """The types a value may have: `Annotated` peeled, unions opened, None dropped."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _members(get_args(annotation)[0])
    if origin in (Union, UnionType):
        return [inner for one in get_args(annotation) for inner in _members(one)]
    return [] if annotation is NoneType else [annotation]


def members(annotation: Any) -> list[Any]:
    """The types a value may have, `Annotated` peeled, unions opened, None dropped."""
    return _members(annotation)


def _is_section(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, Section)


def _is_free(annotation: Any) -> bool:
    from runner.config.reference import SchemaText

    return any(one is Any or one is SchemaText for one in _members(annotation))
