"""`Loaded`: what is known of a file, for every check that comes after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from runner.config.config import RolloutConfig
from runner.config.layers import Origins
from runner.diag.diagnostic import Path, Report


@dataclass
class Loaded:
    """What is known of a file. `config` is None when it cannot be read at all, and partial when `broken` is not empty.

    `tree` is the merged data, sound or not; `profile` is what was asked for. `report` grows with each check.
    """

    path: FilePath
    config: RolloutConfig | None
    tree: dict[str, Any]
    origins: Origins
    report: Report
    broken: set[Path] = field(default_factory=set)
    faulty: set[Path] = field(default_factory=set)
    """Paths with an error that is no refusal of the models: they stay in the config."""
    profile: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    has_file: bool = True
    """False for a config that is made of flags alone; `path` is then where its file would stand."""

    def is_broken(self, path: Path) -> bool:
        """Whether `path`, something around it or something in it has an error already."""
        return touches(path, self.broken)

    def is_faulty(self, path: Path) -> bool:
        """Whether an error at or in `path`, or close around it, is told already: what it leads to is no news."""
        known = self.broken | self.faulty
        return any(one[: len(path)] == path or (len(one) > 2 and path[: len(one)] == one) for one in known)

    def written(self, path: Path) -> Path:
        """A path of the partial config as the file counts: elements that were cut out of an array count there."""
        found: Path = ()
        for part in path:
            if isinstance(part, int):
                for cut in sorted(self._cut_from(found)):
                    part += cut <= part  # noqa: PLW2901
            found = (*found, part)
        return found

    def _cut_from(self, array: Path) -> list[int]:
        return [last for *above, last in self.broken if isinstance(last, int) and tuple(above) == array]


def touches(path: Path, broken: Iterable[Path]) -> bool:
    """Whether `path` is one of `broken`, around one of them or within one."""
    return any(path[: len(one)] == one or one[: len(path)] == path for one in broken)
