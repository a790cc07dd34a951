"""What one sandbox may use together, held by a control group of version 1 or 2, whichever the host has."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from runner.sandboxes.asked import DEFAULT_MEMORY, DEFAULT_PIDS, Limits
from runner.sandboxes.owner import is_dead, owner_key

_PREFIX = "osmosis-run-"
_ROOT = Path("/sys/fs/cgroup")
_PERIOD = 100_000
_JOIN = 'n=$1; shift; while [ "$n" -gt 0 ]; do echo 0 > "$1" || exit 125; shift; n=$((n-1)); done; exec "$@"'


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Where groups can be made: by controller ("memory", "pids", "cpu") the folder above them; None in `version`.

    `version` 2 has one folder for all controllers; with 0 there is nothing that could hold a limit.
    """

    version: int
    folders: dict[str, Path]

    def has(self, controller: str) -> bool:
        return controller in self.folders


NO_HIERARCHY = Hierarchy(0, {})


def find_hierarchy(root: Path = _ROOT, own: Path = Path("/proc/self/cgroup")) -> Hierarchy:
    """The control groups this process may make and join, tried for real; `NO_HIERARCHY` where it may not."""
    try:
        lines = [line.split(":", 2) for line in own.read_text().splitlines()]
    except OSError:
        return NO_HIERARCHY
    second = _second(root, lines)
    return second if second.version else _first(root, lines)


def _first(root: Path, lines: Sequence[Sequence[str]]) -> Hierarchy:
    folders: dict[str, Path] = {}
    for _, controllers, path in lines:
        for name in set(controllers.split(",")) & {"memory", "pids", "cpu"}:
            for mounted in (root / controllers, root / name):
                # In a container the path is that of the host, and the mount shows our own group as its root.
                parent = next((each for each in (mounted / path.lstrip("/"), mounted) if _can_hold(each)), None)
                if parent is not None:
                    folders[name] = parent
                    break
    return Hierarchy(1, folders) if folders else NO_HIERARCHY


def _second(root: Path, lines: Sequence[Sequence[str]]) -> Hierarchy:
    path = next((path for number, controllers, path in lines if number == "0" and not controllers), None)
    if path is None or not (root / "cgroup.controllers").exists():
        return NO_HIERARCHY
    folder = root / path.lstrip("/")
    # The group we are in holds processes, so controllers can usually be given only to groups beside it.
    for parent in (folder, *folder.parents):
        if parent == root.parent:
            break
        enabled = _enabled(parent)
        if {"memory", "pids"} <= enabled and _can_hold(parent):
            return Hierarchy(2, dict.fromkeys(sorted(enabled & {"memory", "pids", "cpu"}), parent))
    return NO_HIERARCHY


def _enabled(folder: Path) -> set[str]:
    """The controllers that groups in `folder` have, or can be given."""
    control = folder / "cgroup.subtree_control"
    with suppress(OSError):
        control.write_text("+memory +pids")
    with suppress(OSError):
        control.write_text("+cpu")
    try:
        return set(control.read_text().split())
    except OSError:
        return set()


def _can_hold(parent: Path) -> bool:
    """Whether a group can be made under `parent` and a process can join it."""
    folder = parent / f"{_PREFIX}{owner_key()}-probe-{time.monotonic_ns()}"
    try:
        folder.mkdir()
    except OSError:
        return False
    try:
        joined = [*joining([folder]), "/bin/true"]
        return subprocess.run(joined, capture_output=True, check=False).returncode == 0
    except OSError:
        return False
    finally:
        _remove(folder)


def joining(folders: Sequence[Path]) -> list[str]:
    """Words to put before a command that make it join these groups first; it exits with 125 when it cannot."""
    if not folders:
        return []
    return ["/bin/sh", "-c", _JOIN, "sh", str(len(folders)), *(f"{folder}/cgroup.procs" for folder in folders)]


class Group:
    """The control group of one sandbox, in every hierarchy it needs. Raises `OSError` when it cannot be made."""

    def __init__(self, hierarchy: Hierarchy, name: str, limits: Limits) -> None:
        self._version = hierarchy.version
        self._by_name = {
            controller: parent / f"{_PREFIX}{owner_key()}-{name}" for controller, parent in hierarchy.folders.items()
        }
        self.folders = list(dict.fromkeys(self._by_name.values()))
        self._seen = 0
        try:
            for folder in self.folders:
                folder.mkdir()
            self._limit(limits)
        except OSError:
            self.remove()
            raise

    def _limit(self, limits: Limits) -> None:
        first = self._version == 1
        memory, cpu, pids = (self._by_name.get(name) for name in ("memory", "cpu", "pids"))
        if memory is not None:
            size = str(DEFAULT_MEMORY if limits.memory is None else limits.memory)
            (memory / ("memory.limit_in_bytes" if first else "memory.max")).write_text(size)
            swap = memory / ("memory.memsw.limit_in_bytes" if first else "memory.swap.max")
            with suppress(OSError):  # not every kernel counts swap
                if swap.exists():
                    swap.write_text(size if first else "0")
        if pids is not None:
            (pids / "pids.max").write_text(str(DEFAULT_PIDS if limits.pids is None else limits.pids))
        if cpu is not None and limits.cpus is not None:
            quota = max(1000, int(limits.cpus * _PERIOD))
            if first:
                (cpu / "cpu.cfs_period_us").write_text(str(_PERIOD))
                (cpu / "cpu.cfs_quota_us").write_text(str(quota))
            else:
                (cpu / "cpu.max").write_text(f"{quota} {_PERIOD}")

    @property
    def gone(self) -> bool:
        """Whether somebody has removed it."""
        return not all(folder.exists() for folder in self.folders)

    def killed_for_memory(self) -> bool:
        """Whether the limit on memory has killed something since this was last asked."""
        folder = self._by_name.get("memory")
        if folder is None:
            return False
        count = _field(folder / ("memory.oom_control" if self._version == 1 else "memory.events"), "oom_kill")
        before, self._seen = self._seen, count
        return count > before

    def kill_all(self) -> None:
        """Kill every process in it; it can be joined again."""
        _kill_all(self._by_name.get("pids") or self.folders[0])

    def end(self) -> None:
        """Kill every process in it. New ones cannot be made meanwhile, where processes are counted."""
        pids = self._by_name.get("pids")
        if pids is not None:
            with suppress(OSError):
                (pids / "pids.max").write_text("0")
        for folder in self.folders[:1] if pids is None else [pids]:
            _kill_all(folder)

    def remove(self) -> None:
        """Kill what is in it and remove it; the last of it may take a moment to go. Blocks, at most two seconds."""
        if self._by_name:
            self.end()
        for folder in self.folders:
            _remove(folder)


def reap_groups(hierarchy: Hierarchy) -> list[Path]:
    """Remove the groups whose owner is dead, with all that runs in them. Returns what was removed."""
    reaped = []
    for parent in dict.fromkeys(hierarchy.folders.values()):
        for folder in parent.glob(f"{_PREFIX}*"):
            key = "-".join(folder.name.removeprefix(_PREFIX).split("-")[:4])
            if is_dead(key):
                _kill_all(folder)
                _remove(folder)
                reaped.append(folder)
    return reaped


def _kill_all(folder: Path) -> None:
    whole = folder / "cgroup.kill"
    with suppress(OSError):
        if whole.exists():
            whole.write_text("1")
            return
    for _ in range(100):
        try:
            pids = [int(line) for line in (folder / "cgroup.procs").read_text().split()]
        except (OSError, ValueError):
            return
        if not pids:
            return
        for pid in pids:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def _remove(folder: Path) -> None:
    for _ in range(200):
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.01)


def _field(file: Path, name: str) -> int:
    try:
        for line in file.read_text().splitlines():
            if line.startswith(f"{name} "):
                return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0
