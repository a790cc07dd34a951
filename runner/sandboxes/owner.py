"""Who owns what a sandbox leaves on the machine: a key that tells any later run whether its owner still lives.

The key is the boot, the namespace of process numbers, the process and when it was started: nothing has to be removed
for it to become false, so `kill -9` leaves no lie behind.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

MARK = "OSMOSIS_SANDBOX"
"""The variable that every process of a sandbox without a namespace of its own carries: KEY/NAME."""

_SPARE = 0x5000_0000
_KEY = re.compile(r"([0-9a-f]{8})-(\d+)-(\d+)-(\d+)")


@cache
def _key_of(pid: int) -> str:
    return f"{_boot()}-{_namespace()}-{pid}-{_started(pid)}"


def owner_key() -> str:
    """The key of this process."""
    return _key_of(os.getpid())


def is_dead(key: str) -> bool:
    """Whether the process of `key` has surely ended. False for what another container owns: nobody here can know."""
    found = _KEY.fullmatch(key)
    if found is None:
        return False
    boot, namespace, pid, started = found.groups()
    if boot != _boot():
        return True
    return int(namespace) == _namespace() and _started(int(pid)) != int(started)


def owned_folder() -> Path:
    """Where the folders of this process's sandboxes are made: private to the user, and named by the owner's key."""
    folder = _home() / owner_key()
    folder.mkdir(exist_ok=True)
    folder.chmod(_mode())
    return folder


def _mode() -> int:
    """Root's sandboxes are other users', who must find their way to theirs; names there are not to be guessed."""
    return 0o711 if os.getuid() == 0 else 0o700


def spare_user() -> int | None:
    """A number that is nobody's, for one sandbox; None where we may not become somebody else."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return None
    try:
        ranges = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text().splitlines()]
    except OSError:
        return None
    for first, _, count in ranges:
        if first + count > _SPARE + (1 << 28):
            return _SPARE + secrets.randbelow(1 << 28)
        if first <= 60_000 < first + count - 5_000:
            return 60_000 + secrets.randbelow(5_000)
    return None


def leave_folder() -> None:
    """Remove this process's folder, if nothing is in it any more."""
    with suppress(OSError):
        (_home() / owner_key()).rmdir()


def reap_folders() -> list[Path]:
    """Remove the folders whose owner is dead, and end what ran in them. Returns what was removed."""
    reaped = []
    for folder in list(_home().iterdir()):
        if is_dead(folder.name):
            for pid in marked(folder.name):
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            remove_tree(folder)
            reaped.append(folder)
    return reaped


def marked(mark: str) -> Iterator[int]:
    """The processes of this machine that carry `mark`, or a mark that begins with it and a slash."""
    wanted = f"{MARK}={mark}".encode()
    for name in os.listdir("/proc"):
        if name.isdigit() and _carries(name, wanted):
            yield int(name)


def remove_tree(folder: Path) -> None:
    """Remove a folder that hostile code could write: rights that were taken away and any depth are no obstacle."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):
        for words in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
            subprocess.run([*words, "--", str(folder)], capture_output=True, check=False)


def _home() -> Path:
    """The folder of all owners of this user. Raises `PermissionError` when somebody else made it first."""
    home = Path(tempfile.gettempdir()) / f"osmosis-run-{os.getuid()}"
    with suppress(FileExistsError):
        home.mkdir(mode=0o700)
    there = home.lstat()
    if not stat.S_ISDIR(there.st_mode) or there.st_uid != os.getuid() or there.st_mode & 0o066:
        raise PermissionError(f"{home} is not a private folder of this user; remove it, or set TMPDIR")
    home.chmod(_mode())
    return home


def _carries(pid: str, wanted: bytes) -> bool:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            entries = file.read().split(b"\0")
    except OSError:
        return False
    return any(entry == wanted or entry.startswith(wanted + b"/") for entry in entries)


@cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text()[:8]
    except OSError:
        return "00000000"


def _namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _started(pid: int) -> int:
    """When a process was started, in ticks since the boot; 0 when there is none, or it has only not been reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])
