"""Variants of the file: matrix axes and profiles name keys that exist and give them values they can have."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from runner.config.checks.checking import Checking
from runner.config.config import RolloutConfig
from runner.config.fields import keys_of, lookup
from runner.config.layers import split_key
from runner.config.names import dotted, unknown_key
from runner.config.words import problem
from runner.diag.diagnostic import Path
from runner.diag.suggest import nearest

_FIXED = ("matrix", "profiles", "extends", "schema")


def check_variants(check: Checking) -> None:
    """`[matrix]` and every profile but the one that is in force, which was validated as part of the file."""
    _matrix(check)
    for name, table in check.config.profiles.items():
        if name != check.loaded.profile:
            _profile(check, name, table)


def _matrix(check: Checking) -> None:
    matrix = check.config.matrix
    for key, values in matrix.axes.items():
        path = ("matrix", "axes", key)
        target = split_key(key)
        if target is None or not _known(check, target):
            _unknown_axis(check, path, target, key)
            continue
        for index, value in enumerate(values):
            _try(check, [((*path, index), target, value)])
    count = math.prod(len(values) for values in matrix.axes.values())
    if matrix.axes and count > matrix.max_cells:
        message = f"the axes make {count} cells, and `matrix.max_cells` is {matrix.max_cells}"
        check.report("out-of-range", ("matrix", "axes"), message, "take values away, or raise `max_cells`", key=True)


def _known(check: Checking, target: Path) -> bool:
    return bool(target) and target[0] not in _FIXED and lookup(target, check.loaded.tree) is not None


def _unknown_axis(check: Checking, path: Path, target: Path | None, key: str) -> None:
    label = ""
    if target:
        near = nearest(str(target[-1]), keys_of(target[:-1], check.loaded.tree))
        label = f"did you mean `{dotted((*target[:-1], near))}`?" if near else ""
    fixed = target is not None and target[0] in _FIXED
    message = f"`{key}` cannot vary" if fixed else f"the axis `{key}` names no key of the file"
    check.report("unknown-axis", path, message, label or ("remove it" if fixed else ""), key=True)


def _profile(check: Checking, name: str, table: dict[str, Any]) -> None:
    settings: list[tuple[Path, Path, Any]] = []
    for path, setting in check.loaded.origins.leaves(("profiles", name)):
        if len(path) < 3:
            continue
        target = (*(split_key(str(path[2])) or (path[2],)), *path[3:])
        if target[0] in _FIXED:
            check.report("unknown-key", path, f"a profile cannot set `{target[0]}`", "remove it", key=True)
        elif not _exists(check, target):
            _unknown_key(check, path, target)
        else:
            settings.append((path, target, setting.value))
    _try(check, settings)


def _exists(check: Checking, target: Path) -> bool:
    """Whether the format has `target`, a grader of another kind than the tree's being the profile's own business."""
    return lookup(target, check.loaded.tree) is not None or (target[0] == "graders" and len(target) > 2)


def _unknown_key(check: Checking, path: Path, target: Path) -> None:
    size = next(size for size in range(1, len(target) + 1) if lookup(target[:size], check.loaded.tree) is None)
    found = unknown_key(target[:size], check.loaded.tree, check.loaded.origins).finding
    place = check.loaded.origins.key_place(path)
    if not check.loaded.is_broken(path):
        check.loaded.report.add(replace(found, place=place, fix=None))


def _try(check: Checking, settings: list[tuple[Path, Path, Any]]) -> None:
    """Put values over the tree and report what the models refuse of them, at the place the values stand."""
    tree = deepcopy(check.loaded.tree)
    for _, target, value in settings:
        _set(tree, target, value)
    try:
        RolloutConfig.model_validate(tree)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            found = problem(one, tree, check.loaded.origins)
            for path, target, _ in settings:
                if found.path[: len(target)] == target and not check.loaded.is_broken(path):
                    inner = (*path, *found.path[len(target) :])
                    place = check.loaded.origins.value_place(inner)
                    check.loaded.report.add(replace(found.finding, place=place, fix=None))


def _set(tree: dict[str, Any], path: Path, value: Any) -> None:
    node: Any = tree
    for key in path[:-1]:
        inner = node.get(key)
        if not isinstance(inner, dict):
            inner = node[key] = {}
        node = inner
    node[path[-1]] = deepcopy(value)
