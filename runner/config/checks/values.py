"""Values in tables of the user's own: `inf` and `nan` are TOML, but no request, record or digest could hold them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from runner.config.checks.checking import Checking
from runner.config.names import dotted
from runner.diag.diagnostic import Diagnostic, Path


def check_values(check: Checking) -> None:
    """No number of the file is infinite or none at all. Sections refuse them by themselves; free tables do not."""
    told = {finding.place for finding in check.loaded.report}
    for path in _strange(check.loaded.tree, ()):
        place = check.loaded.origins.value_place(path)
        if not check.loaded.is_broken(path) and place not in told:
            check.loaded.faulty.add(path)
            written = "" if place is None else place.source.text[place.start : place.end]
            message = f"`{dotted(path)}` must be a finite number, found `{written}`"
            check.loaded.report.add(Diagnostic("wrong-type", message, place, "JSON has no such number"))


def _strange(value: Any, path: Path) -> Iterator[Path]:
    if isinstance(value, float) and not math.isfinite(value):
        yield path
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _strange(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _strange(inner, (*path, index))
