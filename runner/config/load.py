"""`inspect_file`: a file and everything over and under it, with all findings at once. `load`: the same, or an error.

Broken parts are cut out exactly, and what is left is validated again: semantic checks see a partial config and one
mistake is told once.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from runner.config.anchor import anchor
from runner.config.check import check
from runner.config.config import RolloutConfig
from runner.config.gather import Gathered, gather, gather_flags
from runner.config.layers import Override, looks_secret
from runner.config.loaded import Loaded, touches
from runner.config.matrix import Cell
from runner.config.words import Problem, problem
from runner.diag.diagnostic import ConfigError, Diagnostic, Path, Report

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["Loaded", "inspect_file", "inspect_flags", "load"]


def load(
    path: FilePath,
    overrides: Sequence[Override] = (),
    *,
    profile: str | None = None,
    cell: Cell | None = None,
    environ: Mapping[str, str] = os.environ,
    serving: bool = False,
) -> RolloutConfig:
    """The config of the file at `path`, for running it or for `serving` it, which need different secrets.

    Raises `ConfigError` with every finding when there is an error.
    """
    loaded = inspect_file(path, overrides=overrides, profile=profile, cell=cell, environ=environ)
    check(loaded, serving=serving)
    if loaded.report.errors or loaded.config is None:
        raise ConfigError(loaded.report)
    return loaded.config


def inspect_file(
    path: FilePath,
    *,
    overrides: Sequence[Override] = (),
    profile: str | None = None,
    cell: Cell | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Loaded:
    """Read, merge and validate the file at `path`. Never raises for a mistake in it: `report` has every finding."""
    report = Report()
    path = FilePath(path)
    gathered = gather(path, report, overrides=overrides, profile=profile, cell=cell, environ=environ)
    loaded = Loaded(path, None, gathered.tree, gathered.origins, report, profile=profile, environ=environ)
    if gathered.complete:
        loaded.config = _validate(loaded, gathered)
    return loaded


def inspect_flags(
    defaults: Mapping[str, Any],
    *,
    overrides: Sequence[Override] = (),
    profile: str | None = None,
    environ: Mapping[str, str] = os.environ,
    layer: str = "default",
) -> Loaded:
    """The same for a config without a file: `defaults` by dotted key, under the environment and `overrides`."""
    report = Report()
    gathered = gather_flags(defaults, report, overrides=overrides, profile=profile, environ=environ, layer=layer)
    loaded = Loaded(
        gathered.file, None, gathered.tree, gathered.origins, report, profile=profile, environ=environ, has_file=False
    )
    loaded.config = _validate(loaded, gathered)
    return loaded


def _validate(loaded: Loaded, gathered: Gathered) -> RolloutConfig:
    """Validate, cut out what is broken, and again, until the rest is sound."""
    tree = loaded.tree
    while True:
        try:
            config = RolloutConfig.model_validate(tree)
        except ValidationError as error:
            problems = _problems(error.errors(include_url=False), loaded, first=tree is loaded.tree)
            pruned = _prune(loaded.tree, loaded.broken)
            if pruned == tree:
                # A path that leads nowhere would be refused for ever: then its whole section goes.
                loaded.broken.update(path[:1] for path in problems)
                pruned = _prune(loaded.tree, loaded.broken)
            tree = pruned
            continue
        config._origins = loaded.origins
        config._file = gathered.file if loaded.has_file else None
        config._dotenv = gathered.dotenv
        return anchor(config, loaded.origins, loaded.report, loaded.broken)


def _problems(errors: Sequence[ErrorDetails], loaded: Loaded, *, first: bool) -> list[Path]:
    """Report what is new, and return the paths to cut out."""
    problems = [problem(error, loaded.tree, loaded.origins, loaded.written) for error in errors]
    before = frozenset(loaded.broken)
    meant = {one.meant for one in problems if one.meant is not None}
    causes = [one for one in problems if not _holds_another(one, problems)]
    for one in causes:
        if not _follows(one, meant, before, first):
            loaded.report.add(_with_overridden(one, loaded))
        loaded.broken.add(one.broken)
    return [one.broken for one in causes]


def _holds_another(one: Problem, problems: Sequence[Problem]) -> bool:
    """Whether something within the refused value was refused too: an array is not empty because its items are bad."""
    size = len(one.path)
    return any(len(other.path) > size and other.path[:size] == one.path for other in problems)


def _follows(one: Problem, meant: set[Path], before: frozenset[Path], first: bool) -> bool:
    """Whether a refusal only follows from another mistake: a slip in a key's name, or something that was cut out."""
    is_slip = one.path in meant and one.finding.code == "missing-key"
    return is_slip or (not first and touches(one.path, before))


def _with_overridden(one: Problem, loaded: Loaded) -> Diagnostic:
    """The finding; if the command line or the environment set the value, with a note of what it took the place of."""
    place = one.finding.place
    if place is None or place.source.origin == "file" or looks_secret(one.path):
        return one.finding
    before = [where for _, where, _ in loaded.origins.history(one.path)[:-1] if where is not None]
    if not before or before[-1].source.origin != "file":
        return one.finding
    text = before[-1].source.text[before[-1].start : before[-1].end].split("\n")[0]
    note = f"it overrides {before[-1]}, which says `{text}`"
    return replace(one.finding, notes=(*one.finding.notes, note))


def _prune(tree: dict[str, Any], paths: Collection[Path]) -> dict[str, Any]:
    """A copy of `tree` without the values at `paths`. An array loses its element; without a path nothing is left."""
    from copy import deepcopy

    tree = deepcopy(tree)
    # From the back, so that an index still means what it meant.
    for path in sorted(set(paths), key=_order, reverse=True):
        _cut(tree, path)
    return tree


def _order(path: Path) -> tuple[tuple[int, str], ...]:
    return tuple((part, "") if isinstance(part, int) else (-1, part) for part in path)


def _cut(tree: dict[str, Any], path: Path) -> None:
    if not path:
        tree.clear()
        return
    node: Any = tree
    for part in path[:-1]:
        node = _child(node, part)
    last = path[-1]
    if _child(node, last) is not None:
        del node[last]


def _child(node: Any, part: str | int) -> Any:
    if isinstance(node, dict):
        return node.get(part)
    return node[part] if isinstance(node, list) and isinstance(part, int) and part < len(node) else None
