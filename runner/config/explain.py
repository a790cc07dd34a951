"""`explain`: what a key's value is, who set it, what it overrode, and what the format says of it."""

from __future__ import annotations

from typing import Any

from pydantic_core import PydanticUndefined

from runner.config.document import class_doc, default_text, field_docs, toml_text, type_text, value_text
from runner.config.fields import Known, keys, lookup
from runner.config.layers import looks_secret, split_key
from runner.config.loaded import Loaded
from runner.config.names import dotted
from runner.config.reference import Text
from runner.config.section import Section
from runner.diag.diagnostic import Path, Place
from runner.diag.suggest import nearest
from runner.records.quick import quick


@quick
class Layer:
    """One layer's value of a key, as TOML. `place` is None for a default."""

    value: str
    layer: str
    place: Place | None


@quick
class Explanation:
    """What is known of a key. `known` is false for a key the format does not have; then `near` has like names.

    `value` is TOML, empty when the key is not set. `layers` is in order, defaults first: the last one holds. `keys` are
    the keys of a table, each dotted in full.
    """

    key: str
    known: bool
    value: str = ""
    layers: tuple[Layer, ...] = ()
    affects: str = ""
    type: str = ""
    default: str = ""
    doc: str = ""
    keys: tuple[str, ...] = ()
    near: tuple[str, ...] = ()

    @property
    def origin(self) -> str:
        """Where the value came from: a place, or the word `default`."""
        if not self.layers:
            return ""
        last = self.layers[-1]
        return last.layer if last.place is None else str(last.place)

    @property
    def overrode(self) -> tuple[Layer, ...]:
        """The layers whose values do not hold, the latest first."""
        return tuple(reversed(self.layers[:-1]))


def explain(loaded: Loaded, key: str) -> Explanation:
    """What `key` (dotted, quoted parts allowed) is in this file. An empty key lists the sections."""
    path = split_key(key) if key else ()
    known = lookup(path, loaded.tree) if path is not None else None
    if path is None or known is None or _absent(loaded, path, known):
        return Explanation(key, False, near=_near(loaded, path or (), key))
    if known.table is not None and not _is_value(loaded, path):
        return _table(loaded, path, known, known.table)
    return _value(loaded, path, known)


def _absent(loaded: Loaded, path: Path, known: Known) -> bool:
    """Whether `path` goes through a name of the user's that the file does not declare."""
    if known.info is None and path and loaded.origins.setting(path) is None:
        return not any(loaded.origins.leaves(path))
    named = lookup(path[:1], loaded.tree)
    is_keyed = named is not None and named.table is None and len(path) > 2
    return is_keyed and not any(loaded.origins.leaves(path[:2]))


def _is_value(loaded: Loaded, path: Path) -> bool:
    """Whether a key that may be a table holds a plain value here: `concurrency = 16`, `on_limit = "score"`."""
    found = loaded.origins.setting(path)
    return found is not None and found[0] == path and not isinstance(found[1].value, dict)


def _table(loaded: Loaded, path: Path, known: Known, table: type[Section]) -> Explanation:
    prefix = f"{dotted(path)}." if path else ""
    names = tuple(f"{prefix}{name}" for name in keys(table))
    return Explanation(
        dotted(path), True, affects=known.affects, type="table", doc=_doc(known) or class_doc(table), keys=names
    )


def _value(loaded: Loaded, path: Path, known: Known) -> Explanation:
    layers = [] if _default(known) is None else [Layer(_default(known) or "", "default", None)]
    said = loaded.origins.history(path) or _inherited(loaded, path)
    for value, place, layer in said:
        layers.append(Layer(_shown(path, value), layer, place))
    names = tuple(f"{dotted(path)}.{name}" for name in _names(loaded, path, known))
    if names and not said:  # it is set, table by table
        layers = []
    info = known.info
    return Explanation(
        dotted(path),
        True,
        value=layers[-1].value if layers else "" if names else _gathered(loaded, path),
        layers=tuple(layers),
        affects=known.affects,
        type=type_text(known.owner, known.attribute, info) if known.owner is not None and info is not None else "value",
        default="" if info is None else default_text(info),
        doc=_doc(known),
        keys=names,
    )


def _inherited(loaded: Loaded, path: Path) -> list[tuple[Any, Place | None, str]]:
    """The value within a leaf around `path`: an element of an array, a key of a table that is replaced whole."""
    found = loaded.origins.setting(path)
    if found is None:
        return []
    leaf, setting = found
    value = setting.value
    for part in path[len(leaf) :]:
        inside = isinstance(value, dict) and part in value
        value = value[part] if inside else None
    return [] if value is None else [(value, loaded.origins.value_place(path), setting.layer)]


def _gathered(loaded: Loaded, path: Path) -> str:
    node: Any = loaded.tree
    for part in path:
        node = node.get(part) if isinstance(node, dict) else None
    return "" if node is None else _shown(path, node)


def _shown(path: Path, value: Any) -> str:
    return '"…"' if looks_secret(path) and isinstance(value, str) else toml_text(value)


def _default(known: Known) -> str | None:
    value = known.default
    if value is PydanticUndefined or value is None or isinstance(value, Section) or known.info is None:
        return None
    return value_text(value) if isinstance(value, Text) else default_text(known.info)


def _names(loaded: Loaded, path: Path, known: Known) -> list[str]:
    """What a table with names of the user's holds in this file."""
    if known.values is None:
        return []
    node: Any = loaded.tree
    for part in path:
        node = node.get(part) if isinstance(node, dict) else None
    return list(node) if isinstance(node, dict) else []


def _doc(known: Known) -> str:
    return "" if known.owner is None else field_docs(known.owner).get(known.attribute, "")


def _near(loaded: Loaded, path: Path, key: str) -> tuple[str, ...]:
    """Keys that were probably meant: a near name at the first part that fails, or every key that ends like this one."""
    for size in range(1, len(path) + 1):
        before = lookup(path[: size - 1], loaded.tree)
        if before is None:
            break
        here = keys(before.table) if before.table is not None else _names(loaded, path[: size - 1], before)
        if path[size - 1] not in here:
            near = nearest(str(path[size - 1]), here)
            if near is not None:
                return (dotted((*path[: size - 1], near, *path[size:])),)
            break
    from runner.config.document import describe

    return tuple(entry.key for entry in describe() if entry.key.endswith(f".{key}") and "(" not in entry.key)[:5]
