"""One server at a time on a state file: two would play the same rollouts and contradict each other."""

from __future__ import annotations

from pathlib import Path

from runner.store.errors import RunLocked, StoreError, not_written
from runner.store.lock import Holder, RunLock

_ELSEWHERE = "set `[serve] state` to another file"


def lock_state(state: Path) -> RunLock:
    """The lock on the state file at `state`, in a file beside it. Raises `StoreError`, `RunLocked` if it is served.

    SQLite has locks of its own on the file itself, which it would lose when another descriptor of it is closed.
    """
    try:
        state.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise not_written(state.parent, error, _ELSEWHERE, "made") from None
    try:
        return RunLock.acquire(state.with_name(f"{state.name}.lock"), lambda path, holder: _served(state, holder))
    except StoreError as error:
        error.hint = error.hint or _ELSEWHERE  # the lock is a run's, too, and does not know what it is taken for
        raise


def _served(state: Path, holder: Holder) -> RunLocked:
    pid = holder.get("pid")
    who = f" (pid {pid} on {holder.get('host')}, since {holder.get('started')})" if pid else ""
    stop = f"stop it with `kill {pid}`" if pid else "stop it"
    return RunLocked(
        f"{state}: another osmosis-run is serving with this file{who}",
        f"{stop}, or set `[serve] state` to another file",
        pid if isinstance(pid, int) else None,
    )
