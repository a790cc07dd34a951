"""`Variable`: one of the environment or of `.env`, with its place. `OSMOSIS_RUN__SECTION__KEY=value` sets any key.

What a variable of the first generation sets, `first_generation` knows; of `.env` only those count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from runner.config.fields import keys_of
from runner.config.layers import ENVIRONMENT_PREFIX, Override, Spot, looks_secret
from runner.diag.diagnostic import Place, Source
from runner.records.quick import quick

OURS = ("OSMOSIS_", "_OSMOSIS_")
"""What the names of variables that may mean a setting begin with, in upper case."""


@quick
class Variable:
    """One variable, where it was set, and the folder that a relative path in it starts from."""

    name: str
    value: str
    spot: Spot
    folder: FilePath

    def override(self, key: str, value: Any) -> Override:
        """This variable as the setting of `key`."""
        return Override(key, self.spot.value.source, None, value, self.spot, self.folder)


def of_process(environ: Mapping[str, str]) -> Iterator[Variable]:
    """The variables of the process that may mean a setting, by name. Values that look secret are not shown."""
    for name in sorted(environ):
        if name.upper().startswith(OURS):
            value = environ[name]
            shown = "…" if looks_secret(tuple(name.split("__"))) else value
            source = Source("environment", f"{name}={shown}", "environment")
            spot = Spot(Place(source, 0, len(name)), Place(source, len(name) + 1, len(source.text)))
            yield Variable(name, value, spot, FilePath.cwd())


def named_keys(variables: Sequence[Variable], tree: Mapping[str, Any]) -> list[Override]:
    """The settings of those variables that name a key of the format by `OSMOSIS_RUN__`."""
    found = []
    for variable in variables:
        words = variable.name[len(ENVIRONMENT_PREFIX) :]
        if variable.name.upper().startswith(ENVIRONMENT_PREFIX) and words:
            key = ".".join(map(_quoted, _match_case(words.split("__"), tree)))
            spot = variable.spot
            found.append(Override(key, spot.value.source, variable.value, spot=spot, folder=variable.folder))
    return found


def _quoted(part: str) -> str:
    return part if part.replace("_", "").replace("-", "").isalnum() else f'"{part}"'


def _match_case(words: Sequence[str], tree: Mapping[str, Any]) -> list[str]:
    """The words as keys: as the tree or the format spells them, whatever their case; else in lower case."""
    path: list[str] = []
    node: Any = tree
    for word in words:
        present = list(node) if isinstance(node, dict) else []
        known = [*present, *keys_of(tuple(path), tree)]
        match = next((key for key in known if key.lower() == word.lower()), word.lower())
        path.append(match)
        node = node.get(match) if isinstance(node, dict) else None
    return path
