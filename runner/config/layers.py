"""Layers: the file, what it extends, profile, matrix cell, environment and `--set`, merged into one tree.

Every value remembers who set it. Layers are merged leaf by leaf, so a place is looked up in the text that wrote the
leaf, and only when somebody asks: a sound file never pays for it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, Protocol

from runner.diag.diagnostic import Path, Place, Source
from runner.records.quick import quick

ENVIRONMENT_PREFIX = "OSMOSIS_RUN__"
SECRET_WORDS = ("key", "token", "secret", "password")
ABSENT: Any = object()
"""The value of an override whose text has none."""


class Placed(Protocol):
    """A text whose keys and values can be pointed at: a `diag.toml.Document`, or an override's words."""

    def key_place(self, path: Path) -> Place | None: ...

    def value_place(self, path: Path) -> Place | None: ...


@quick
class Spot:
    """The places of a setting that has one key and one value, whatever the path it sets: a variable."""

    key: Place
    value: Place

    def key_place(self, path: Path) -> Place | None:
        return self.key

    def value_place(self, path: Path) -> Place | None:
        return self.value


@quick
class Override:
    """One key set from outside the file.

    `text` is parsed as TOML, a bare word that is no TOML being a string; without `text`, `value` is the value. `source`
    is what a finding points at: the command line's word or the environment variable. `spot` says where in it key and
    value stand, where that is known; relative paths start from `folder`, or else from the current one.
    """

    key: str
    source: Source
    text: str | None = None
    value: Any = ABSENT
    spot: Spot | None = None
    folder: FilePath | None = None

    @classmethod
    def from_set(cls, word: str) -> Override:
        """`--set KEY=VALUE`. A word without `=` becomes a finding when it is loaded."""
        key, text = _split(word)
        return cls(key, Source("command line", f"--set {word}", "command line"), text)

    @classmethod
    def from_option(cls, key: str, value: Any, shown: str) -> Override:
        """An option of a command that stands for a key: `--model M` is `from_option("model.id", M, "--model M")`."""
        return cls(key, Source("command line", shown, "command line"), None, value)


@quick
class Words:
    """The places of an override: its key and its value within the words it was given in."""

    source: Source
    key: str
    text: str

    def key_place(self, path: Path) -> Place | None:
        return self._find(self.key)

    def value_place(self, path: Path) -> Place | None:
        return self._find(self.text, after=max(self.source.text.find(self.key), 0) + len(self.key))

    def _find(self, word: str, after: int = 0) -> Place:
        start = self.source.text.find(word, after) if word else -1
        if start < 0:
            return Place(self.source, 0, len(self.source.text))
        return Place(self.source, start, start + len(word))


@quick
class Setting:
    """One layer's value of one leaf. `path` is where it stands in `placed`; its paths are relative to `folder`."""

    value: Any
    layer: str
    folder: FilePath
    placed: Placed
    path: Path


class Origins:
    """Who set each value. A leaf is a scalar, an array, an empty table, or a table that is replaced whole."""

    def __init__(self, folder: FilePath) -> None:
        self.main = folder
        self._settings: dict[Path, list[Setting]] = {}

    def record(self, path: Path, setting: Setting) -> None:
        self._settings.setdefault(path, []).append(setting)

    def forget_below(self, path: Path) -> None:
        """Drop what was recorded under `path`, because a value took the table's place."""
        for known in [known for known in self._settings if len(known) > len(path) and known[: len(path)] == path]:
            del self._settings[known]

    def forget(self, path: Path) -> None:
        """Drop what was recorded at `path`, because a table took the value's place."""
        self._settings.pop(path, None)

    def setting(self, path: Path) -> tuple[Path, Setting] | None:
        """The leaf that holds `path` (itself or around it), and the setting that won."""
        path = tuple(path)
        for size in range(len(path), 0, -1):
            found = self._settings.get(path[:size])
            if found:
                return path[:size], found[-1]
        return None

    def leaves(self, path: Path = ()) -> Iterator[tuple[Path, Setting]]:
        """Every leaf at or under `path` with the setting that won, in the order of first mention."""
        for known, settings in self._settings.items():
            if known[: len(path)] == tuple(path):
                yield known, settings[-1]

    def key_place(self, path: Path) -> Place | None:
        """Where the key of `path` was written, or None for a default."""
        return self._place(path, key=True)

    def value_place(self, path: Path) -> Place | None:
        """Where the value of `path` was written, or None for a default."""
        return self._place(path, key=False)

    def folder(self, path: Path) -> FilePath:
        """The folder that a relative path in the value of `path` starts from; a default starts from the file's own."""
        found = self.setting(path)
        return self.main if found is None else found[1].folder

    def layer(self, path: Path) -> str:
        """The name of the layer that set `path`; `default` if none did."""
        found = self.setting(path)
        return "default" if found is None else found[1].layer

    def history(self, path: Path) -> list[tuple[Any, Place | None, str]]:
        """Every layer's value of the leaf `path`, with its place and layer, in order; the last one holds."""
        settings = self._settings.get(tuple(path), [])
        return [(one.value, one.placed.value_place(one.path), one.layer) for one in settings]

    def _place(self, path: Path, *, key: bool) -> Place | None:
        path = tuple(path)
        found = self.setting(path)
        if found is not None:
            leaf, setting = found
            return _look(setting, setting.path + path[len(leaf) :], key)
        for leaf, setting in reversed(list(self.leaves(path))):
            above = len(leaf) - len(path)
            if len(setting.path) - above > 0:
                return _look(setting, setting.path[: len(setting.path) - above], key)
            return _look(setting, setting.path, key=True)
        return None


def _look(setting: Setting, path: Path, key: bool) -> Place | None:
    """The place of `path`, or of the nearest thing around it that was written."""
    placed = setting.placed
    while path:
        place = placed.key_place(path) if key else placed.value_place(path)
        if place is not None:
            return place
        path = path[:-1]
    return None


def leaves(tree: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """The leaves of a tree of tables with their paths."""
    for key, value in tree.items():
        inner = (*path, key)
        if isinstance(value, dict) and value and not _whole(inner):
            yield from leaves(value, inner)
        else:
            yield inner, value


def put(tree: dict[str, Any], origins: Origins, path: Path, setting: Setting) -> None:
    """Set one leaf. A table given for a table only opens it; anything else takes the place of what is there."""
    table = tree
    for size, key in enumerate(path[:-1], 1):
        inner = table.get(str(key))
        if not isinstance(inner, dict):
            inner = table[str(key)] = {}
            origins.forget(path[:size])
        table = inner
    last = str(path[-1])
    if setting.value == {} and isinstance(table.get(last), dict) and not _whole(path):
        return
    origins.forget_below(path)
    table[last] = _copy(setting.value)
    origins.record(path, setting)


def put_all(tree: dict[str, Any], origins: Origins, path: Path, setting: Setting) -> None:
    """Set a value that may be a table: merged leaf by leaf, as a table of a file is."""
    value = setting.value
    if not (isinstance(value, dict) and value) or _whole(path):
        put(tree, origins, path, setting)
        return
    for inner, leaf in leaves(value, path):
        where = (*setting.path, *inner[len(path) :])
        put(tree, origins, inner, Setting(leaf, setting.layer, setting.folder, setting.placed, where))


def _copy(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_copy(inner) for inner in value]
    return value


def _whole(path: Path) -> bool:
    """Whether the table at `path` is one value: a choice between its keys, which merging would mix up."""
    section, last = path[0], path[-1]
    if len(path) == 2:
        return (section, last) in _WHOLE or (section == "model" and last in ("api_key", "concurrency"))
    if len(path) != 3:
        return False
    named = {"tools": ("parameters",), "graders": ("extract", "prompt", "schema"), "roles": ("api_key", "concurrency")}
    return last in named.get(str(section), ())


_WHOLE = {
    ("workflow", "system"),
    ("workflow", "user"),
    ("workflow", "label"),
    ("limits", "on_limit"),
    ("serve", "api_key"),
}


def split_key(key: str) -> Path | None:
    """A dotted key, quoted parts allowed, as a path; None when it is no TOML key."""
    if "\n" in key or "=" in _split(key + "=")[0]:
        return None
    try:
        node: Any = tomllib.loads(f"{key} = 0")
    except ValueError:
        return None
    path: list[str] = []
    while isinstance(node, dict):
        name, node = next(iter(node.items()))
        path.append(name)
    return tuple(path)


def parse_value(text: str) -> Any:
    """The TOML value `text`, or `text` itself when it is a bare word. Raises ValueError for broken TOML."""
    if text[:2] in ("{{", "{%", "{#"):  # a template, and never the beginning of a TOML value
        return text
    try:
        data = tomllib.loads(f"v = {text}")
    except ValueError:
        if text[:1] in ("[", "{", '"', "'"):
            raise
        return text
    return data["v"] if len(data) == 1 else text


def _split(word: str) -> tuple[str, str | None]:
    """At the first `=` that stands outside quotes."""
    quote = ""
    for index, character in enumerate(word):
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        elif character == "=":
            return word[:index].strip(), word[index + 1 :].strip()
    return word.strip(), None


def looks_secret(path: Path) -> bool:
    """Whether the last key says that its value must not be shown: `api_key`, `*_token`, `*secret*`."""
    name = str(path[-1]).lower() if path else ""
    return name.endswith(SECRET_WORDS) or "secret" in name
