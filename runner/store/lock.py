"""One process at a time in a run: `flock` on `run.lock`.

The kernel drops the lock with the process, so a lock is never stale; what the file says is only for the message.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from runner.store.errors import RunLocked, StoreError, not_written

Holder: TypeAlias = dict[str, Any]
"""What the process that has a lock says of itself: pid, host, started. Empty if it says nothing."""


class RunLock:
    """Held from `acquire` to `release`, or to the end of the process."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, path: Path, refusal: Callable[[Path, Holder], RunLocked] | None = None) -> RunLock:
        """Take the lock at once or raise `RunLocked`, which says who has it: `refusal` words it for another use."""
        while True:
            descriptor = _open(path)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                holder = _holder(descriptor)
                os.close(descriptor)
                raise (refusal or _locked)(path, holder) from None
            except OSError as error:
                os.close(descriptor)
                raise StoreError(f"{path}: cannot be locked: {error.strerror}") from None
            if _still_there(path, descriptor):
                break
            os.close(descriptor)  # the run was archived between opening and locking
        lock = cls(path, descriptor)
        lock._sign()
        return lock

    def fileno(self) -> int:
        """The descriptor. A process that inherits it holds the lock, too, until it ends."""
        return self._descriptor

    def release(self) -> None:
        """Give the lock up; the file stays, empty. A second call does nothing."""
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> RunLock:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def _sign(self) -> None:
        holder = {"pid": os.getpid(), "host": os.uname().nodename, "started": time.strftime("%Y-%m-%d %H:%M:%S")}
        try:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps(holder).encode() + b"\n", 0)
        except OSError as error:
            self.release()
            raise not_written(self.path, error) from None


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise not_written(path, error, what="opened") from None


def _still_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _holder(descriptor: int) -> Holder:
    try:
        holder = json.loads(os.pread(descriptor, 4096, 0))
    except (OSError, ValueError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _locked(path: Path, holder: Holder) -> RunLocked:
    pid = holder.get("pid")
    who = f" (pid {pid} on {holder.get('host')}, since {holder.get('started')})" if pid else ""
    return RunLocked(
        f"{path.parent}: another osmosis-run is working in this run{who}",
        f"wait for it, or stop it with `kill {pid}`" if pid else "wait for it to end",
        pid if isinstance(pid, int) else None,
    )
