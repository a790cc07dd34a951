"""What a section asks of a sandbox, as plain values: nothing here runs, so building a plan costs no import."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_MEMORY = 2 << 30
DEFAULT_PIDS = 256


@dataclass(frozen=True, slots=True)
class Limits:
    """`memory` is in bytes, `cpus` in processors, `pids` in processes and threads; None for the default."""

    memory: int | None = None
    cpus: float | None = None
    pids: int | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of the host that is seen inside."""

    host: Path
    writable: bool = True
