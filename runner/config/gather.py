"""`gather`: read the file and what it extends, and put every layer over the other in the order of precedence.

defaults < extends, left to right < the file < profile < matrix cell < the first generation's variables <
`OSMOSIS_RUN__` variables < `--set`. Of one variable, the process's wins over that of `.env`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from runner.config.dotenv import read_dotenv
from runner.config.first_generation import is_setting, serve_keys
from runner.config.layers import (
    ABSENT,
    Origins,
    Override,
    Setting,
    Words,
    leaves,
    parse_value,
    put_all,
    split_key,
)
from runner.config.matrix import Cell
from runner.config.names import dotted
from runner.config.variables import Variable, named_keys, of_process
from runner.diag.diagnostic import Diagnostic, Path, Place, Report, Source
from runner.diag.suggest import alternatives, nearest
from runner.diag.toml import Document, read_document, read_source


@dataclass
class Gathered:
    """The merged tree and where it came from. `complete` is false when a file could not be read.

    `file` is where the file stands, or would stand for a config that is made of flags alone.
    """

    file: FilePath
    tree: dict[str, Any]
    origins: Origins
    complete: bool
    dotenv: dict[str, str] = field(default_factory=dict)


def gather(
    path: FilePath,
    report: Report,
    *,
    overrides: Sequence[Override] = (),
    profile: str | None = None,
    cell: Cell | None = None,
    environ: Mapping[str, str],
) -> Gathered:
    """Read and merge every layer. What cannot be read or parsed is a finding in `report`."""
    file = path.absolute()
    work = _Gathering(Gathered(file, {}, Origins(file.parent), True), report)
    work.file(file, str(path), ())
    if work.result.complete:
        if profile is not None:
            work.profile(profile)
        if cell is not None:
            work.cell(cell)
        work.environment(environ, FilePath(path).parent / ".env")
        work.overrides(overrides, "command line")
    return work.result


class Nowhere:
    """Of a value that nobody wrote."""

    def key_place(self, path: Path) -> Place | None:
        return None

    def value_place(self, path: Path) -> Place | None:
        return None


def gather_flags(
    defaults: Mapping[str, Any],
    report: Report,
    *,
    overrides: Sequence[Override] = (),
    profile: str | None = None,
    environ: Mapping[str, str],
    layer: str,
) -> Gathered:
    """Merge a config that no file holds: `defaults` by dotted key, under the environment and `overrides`.

    `layer` is what `explain` calls the defaults. Relative paths start from the current folder.
    """
    file = FilePath.cwd() / "workflow.toml"
    work = _Gathering(Gathered(file, {}, Origins(file.parent), True), report)
    for key, value in defaults.items():
        path = tuple(key.split("."))
        work.put(path, Setting(value, layer, file.parent, Nowhere(), path))
    if profile is not None:
        work.profile(profile)
    work.environment(environ, FilePath(".env"))
    work.overrides(overrides, "command line")
    return work.result


class _Gathering:
    def __init__(self, result: Gathered, report: Report) -> None:
        self.result = result
        self.report = report

    def put(self, path: Path, setting: Setting) -> None:
        put_all(self.result.tree, self.result.origins, path, setting)

    def file(self, file: FilePath, name: str, above: tuple[FilePath, ...]) -> None:
        """Merge what `file` extends, then `file` itself. `above` is the chain of files that led here."""
        document = self.read(file, name)
        if document is None:
            self.result.complete = False
            return
        chain = (*above, file.resolve())
        parents = document.data.get("extends", [])
        if isinstance(parents, list):
            for index, parent in enumerate(parents):
                if isinstance(parent, str):
                    self.parent(document, file, name, index, parent, chain)
        for path, value in leaves(document.data):
            if path[0] != "extends" or not above:
                self.put(path, Setting(value, name, file.parent, document, path))

    def read(self, file: FilePath, name: str) -> Document | None:
        source = read_source(file, name, self.report)
        return None if source is None else read_document(source, self.report)

    def parent(
        self, document: Document, file: FilePath, name: str, index: int, parent: str, chain: tuple[FilePath, ...]
    ) -> None:
        place = document.value_place(("extends", index))
        target = file.parent / parent
        shown = os.path.normpath(FilePath(name).parent / parent)
        if target.resolve() in chain:
            route = " → ".join(one.name for one in (*chain[chain.index(target.resolve()) :], target.resolve()))
            self.report.add(Diagnostic("extends-cycle", f"`{name}` extends itself", place, "", notes=(route,)))
            self.result.complete = False
        elif not target.is_file():
            kind = "is a folder, not a file" if target.is_dir() else "is not there"
            near = _near_file(target)
            label = f"did you mean `{FilePath(parent).with_name(near)}`?" if near else ""
            self.report.add(Diagnostic("extends-missing", f"`{shown}`, which `{name}` extends, {kind}", place, label))
            self.result.complete = False
        else:
            self.file(target, shown, chain)

    def profile(self, name: str) -> None:
        """Put the keys of `[profiles.NAME]` over the tree, with the places they have in the file."""
        profiles = self.result.tree.get("profiles")
        known = list(profiles) if isinstance(profiles, dict) else []
        if name not in known:
            self.report.add(_unknown_profile(name, known))
            return
        for path, setting in list(self.result.origins.leaves(("profiles", name))):
            if len(path) > 2:
                self.dotted_leaf(path[2:], setting, f"profile {name}")

    def dotted_leaf(self, path: Path, setting: Setting, layer: str) -> None:
        first = split_key(str(path[0])) or (path[0],)
        moved = Setting(setting.value, layer, setting.folder, setting.placed, setting.path)
        self.put((*first, *path[1:]), moved)

    def cell(self, cell: Cell) -> None:
        for choice in cell.choices:
            axis = ("matrix", "axes", choice.key)
            found = self.result.origins.setting(axis)
            path = split_key(choice.key)
            if found is not None and path is not None:
                where = (*found[1].path, choice.index)
                self.put(path, Setting(choice.value, f"matrix {cell.name}", found[1].folder, found[1].placed, where))

    def environment(self, environ: Mapping[str, str], dotenv: FilePath) -> None:
        """Put what the environment sets over the tree. Of `.env`, only the first generation's variables are read."""
        folder = self.result.file.parent
        entries = read_dotenv(folder / ".env", str(dotenv), self.report, environ, is_setting)
        self.result.dotenv = {entry.name: entry.value for entry in entries}
        beside = [Variable(one.name, one.value, one.spot, folder) for one in entries]
        process = list(of_process(environ))
        self.overrides(serve_keys([*beside, *process], self.report), "environment")
        self.overrides(named_keys(process, self.result.tree), "environment")

    def overrides(self, overrides: Sequence[Override], layer: str) -> None:
        for override in overrides:
            setting = self.setting(override, layer)
            if setting is not None:
                path = setting.path
                opened = _opened(self.result.tree, path)
                if opened is not None:
                    message = f"`{dotted(opened)}` is an array, and arrays are replaced whole"
                    self.bad(override, message, f"set the whole array: `{dotted(opened)} = […]`", override.key)
                    continue
                self.put(path, setting)

    def setting(self, override: Override, layer: str) -> Setting | None:
        """The override as a setting, or None and a finding."""
        path = split_key(override.key)
        if path is None:
            self.bad(override, "this is no key", "keys are dotted: `sampling.temperature`", override.key)
            return None
        value = override.value
        if override.text is not None:
            try:
                value = parse_value(override.text)
            except ValueError:
                self.bad(
                    override,
                    f"the value of `{override.key}` is no TOML",
                    "a bracket or a quote is not closed",
                    override.text,
                )
                return None
        if value is ABSENT:
            self.bad(override, f"`{override.key}` is given no value", "write `KEY=VALUE`")
            return None
        text = override.text if override.text is not None else str(override.value)
        placed = override.spot or Words(override.source, override.key, text)
        if override.source.origin == "file":
            layer = override.source.name
        return Setting(value, layer, override.folder or FilePath.cwd(), placed, path)

    def bad(self, override: Override, message: str, label: str = "", part: str = "") -> None:
        """A finding at `part` of the words that gave the override, or at all of them."""
        start = max(override.source.text.rfind(part), 0) if part else 0
        place = Place(override.source, start, start + len(part) if part else len(override.source.text))
        if override.spot is not None:
            place = override.spot.value if part == override.text else override.spot.key
        self.report.add(Diagnostic("bad-override", message, place, label))


def _opened(tree: Mapping[str, Any], path: Path) -> Path | None:
    """The array that `path` tries to reach into, if it does."""
    node: Any = tree
    for size, key in enumerate(path[:-1], 1):
        node = node.get(key) if isinstance(node, dict) else None
        if isinstance(node, list):
            return path[:size]
    return None


def _unknown_profile(name: str, known: list[str]) -> Diagnostic:
    source = Source("command line", f"--profile {name}", "command line")
    near = nearest(name, known)
    label = f"did you mean `{near}`?" if near else ""
    listed = alternatives(known)
    notes = (f"profiles: {listed}",) if listed else () if known else ("the file has no `[profiles]`",)
    place = Place(source, source.text.index(name) if name else 0, len(source.text))
    return Diagnostic("unknown-profile", f"no profile is called `{name}`", place, label, notes=notes)


def _near_file(target: FilePath) -> str | None:
    folder = target.parent
    return nearest(target.name, [entry.name for entry in folder.iterdir()]) if folder.is_dir() else None
