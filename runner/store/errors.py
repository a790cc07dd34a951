"""What can go wrong with a run on disk.

StoreError
└── RunLocked     another process is working in the run
"""

from __future__ import annotations


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
