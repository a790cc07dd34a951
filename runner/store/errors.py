"""What can go wrong with a run on disk.

StoreError
├── RunLocked     another process is working in the run
├── Unusable      the file is lost: no later try will succeed
└── NoRoom        the disk is full: the run is incomplete, and whole
"""

from __future__ import annotations

import errno
from pathlib import Path


class StoreError(Exception):
    """A run that cannot be read or written. `hint` says what to do about it, or is empty."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class RunLocked(StoreError):
    """Another process is working in the run. `pid` is None if it did not say."""

    def __init__(self, message: str, hint: str = "", pid: int | None = None) -> None:
        super().__init__(message, hint)
        self.pid = pid


class Unusable(StoreError):
    """A file that is damaged, replaced, closed or none of ours: it takes nothing any more, however often one tries."""


class NoRoom(StoreError):
    """A full disk, a used-up quota, or a file that may not grow any more. What was counted before is safe."""


_NO_ROOM = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your disk quota is used up",
    errno.EFBIG: "the file may not grow any more (see `ulimit -f`)",
}


def not_written(path: Path, error: OSError, hint: str = "", what: str = "written") -> StoreError:
    """What to raise when `path` cannot be written, made or opened; `hint` is for all but a lack of room."""
    if error.errno in _NO_ROOM:
        return NoRoom(
            f"{path}: cannot be written: {_NO_ROOM[error.errno]}",
            "make room and run the same command again: every rollout that was counted is safe",
        )
    return StoreError(f"{path}: cannot be {what}: {error.strerror}", hint)
