"""`[matrix]`: one file, many variants: every combination of the values of its axes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Annotated, Any

from pydantic import Field

from runner.config.section import Section
from runner.records.quick import quick

ProfileTable = dict[str, dict[str, Any]]
"""`[profiles.NAME]`: keys of the file, dotted or as nested tables, that `--profile NAME` sets."""


class MatrixSection(Section):
    """Variants of this file: every combination of the values of the axes is a run of its own."""

    axes: dict[str, Annotated[tuple[Any, ...], Field(strict=False, min_length=1)]] = Field(default_factory=dict)
    """Dotted key = the values it takes: `{ "sampling.temperature" = [0.0, 0.7] }`."""
    max_cells: Annotated[int, Field(ge=1)] = 64
    """The most combinations; more is an error, because it is usually a slip. Default 64."""


@quick
class Choice:
    """One value of one axis: `key` as the file writes it, `index` its place in the axis."""

    key: str
    index: int
    value: Any


@quick
class Cell:
    """One combination. `name` is stable and fit for a folder's name once slashes are replaced."""

    name: str
    choices: tuple[Choice, ...]


def cells(tree: Mapping[str, Any]) -> list[Cell]:
    """All combinations of `[matrix] axes` in a resolved tree, the last axis fastest. None without axes."""
    matrix = tree.get("matrix")
    axes = matrix.get("axes") if isinstance(matrix, Mapping) else None
    if not isinstance(axes, Mapping) or not axes:
        return []
    columns = [
        [Choice(key, index, value) for index, value in enumerate(values)]
        for key, values in axes.items()
        if isinstance(values, list | tuple)
    ]
    return [Cell(_name(choices), choices) for choices in product(*columns)]


def _name(choices: tuple[Choice, ...]) -> str:
    import json

    words = (c.value if isinstance(c.value, str) else json.dumps(c.value, default=str) for c in choices)
    return ",".join(f"{choice.key}={word}" for choice, word in zip(choices, words, strict=True))
