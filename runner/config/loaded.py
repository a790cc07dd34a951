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
    profile: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)

    def is_broken(self, path: Path) -> bool:
        """Whether `path`, something around it or something in it has an error already."""
        return touches(path, self.broken)


def touches(path: Path, broken: Iterable[Path]) -> bool:
    """Whether `path` is one of `broken`, around one of them or within one."""
    return any(path[: len(one)] == one or one[: len(path)] == path for one in broken)
