"""`Inside`: reads and writes what lies in a local sandbox from outside, as its inside sees it.

What runs in there may plant symbolic links and swap folders at any moment. Every part of a path is therefore opened by
itself without following links, a link is followed in the names of the inside, and what is checked is the very
descriptor that is read: there is no moment between a check and its use.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from runner.sandboxes.asked import Mount
from runner.sandboxes.sandbox import Entry

MAX_FILE = 256 << 20
"""Bytes of the longest file that is read whole: a sparse one could claim anything."""

_LINKS = 40
_O_PATH = getattr(os, "O_PATH", 0)
_FOLDER = _O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class _Step:
    """A folder on the way: its name inside, an O_PATH descriptor or -1 for one that only leads to a mount."""

    path: str
    fd: int
    mount: Mount | None


class Inside:
    """`mounts` by the absolute path inside; relative paths count from `workdir`. All methods block.

    `owner` is whose everything is that is made here, where that is not us.
    """

    def __init__(self, mounts: Mapping[str, Mount], workdir: str, owner: int | None = None) -> None:
        self._mounts = {os.path.normpath(path): mount for path, mount in mounts.items()}
        self._workdir = workdir
        self._owner = owner

    def read(self, path: str, limit: int | None = None) -> bytes:
        with self._file(path) as (fd, _):
            size = os.fstat(fd).st_size
            if limit is None and size > MAX_FILE:
                raise OSError(errno.EFBIG, f"{size} bytes are more than {MAX_FILE} that can be read at once", path)
            with os.fdopen(os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC), "rb") as file:
                return file.read(MAX_FILE if limit is None else limit)

    def write(self, path: str, data: bytes, mode: int | None = None) -> None:
        with self._parent(path, make=True) as (folder, name):
            given = mode
            with suppress(FileNotFoundError):
                there = os.stat(name, dir_fd=folder, follow_symlinks=False)
                if stat.S_ISDIR(there.st_mode):
                    raise IsADirectoryError(errno.EISDIR, "a folder is in the way", path)
                given = stat.S_IMODE(there.st_mode) if mode is None else mode
            fresh = f".{name[:100]}.{secrets.token_hex(6)}"
            opened = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=folder)
            try:
                with os.fdopen(opened, "wb") as file:
                    file.write(data)
                    self._give(file.fileno())
                    os.fchmod(file.fileno(), 0o644 if given is None else given & 0o777)
                os.replace(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(fresh, dir_fd=folder)
                raise

    def entries(self, path: str = ".") -> list[Entry]:
        with self._resolved(path) as steps:
            last = steps[-1]
            if last.fd < 0:
                raise PermissionError(errno.EACCES, "this part of the sandbox is not reached from outside", path)
            opened = os.open(f"/proc/self/fd/{last.fd}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                return sorted((_entry(opened, name) for name in os.listdir(opened)), key=lambda entry: entry.name)
            finally:
                os.close(opened)

    def remove(self, path: str) -> None:
        with self._parent(path, follow=False) as (folder, name):
            try:
                os.unlink(name, dir_fd=folder)
            except (IsADirectoryError, PermissionError):
                os.rmdir(name, dir_fd=folder)

    def copy_in(self, source: Path, path: str) -> None:
        """Copy a file of the host to `path`, or the contents of a folder into it; links stay links."""
        if source.is_dir():
            with self._parent(f"{path.rstrip('/') or path}/.", make=True) as (folder, _):
                self._copy_tree(source, folder)
            return
        target = f"{path}{source.name}" if path.endswith("/") or path in (".", "") else path
        with self._parent(target, make=True) as (folder, name):
            self._copy_file(source, folder, name)

    def _copy_tree(self, source: Path, folder: int) -> None:
        """What `source` holds into an open folder. A link that an earlier copy left there is never followed."""
        with os.scandir(source) as listed:
            entries = list(listed)
        for entry in entries:
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), entry.name, dir_fd=folder)
                if self._owner is not None:
                    os.chown(entry.name, self._owner, self._owner, dir_fd=folder, follow_symlinks=False)
            elif entry.is_dir():
                self._mkdir(folder, entry.name)
                inner = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                try:
                    self._give(inner)
                    self._copy_tree(Path(entry.path), inner)
                    os.fchmod(inner, stat.S_IMODE(entry.stat().st_mode) & 0o777 | 0o700)
                finally:
                    os.close(inner)
            elif entry.is_file():
                self._copy_file(Path(entry.path), folder, entry.name)

    def _copy_file(self, source: Path, folder: int, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with source.open("rb") as file, os.fdopen(os.open(name, flags, 0o600, dir_fd=folder), "wb") as copy:
            shutil.copyfileobj(file, copy, 1 << 20)
            copy.flush()
            there = os.fstat(file.fileno())
            self._give(copy.fileno())
            os.fchmod(copy.fileno(), stat.S_IMODE(there.st_mode) & 0o777 | 0o600)
            os.utime(copy.fileno(), ns=(there.st_atime_ns, there.st_mtime_ns))

    def _mkdir(self, folder: int, name: str) -> bool:
        """Whether it was not there."""
        try:
            os.mkdir(name, 0o755, dir_fd=folder)
        except FileExistsError:
            return False
        return True

    def _give(self, fd: int) -> None:
        if self._owner is not None:
            os.fchown(fd, self._owner, self._owner)

    @contextmanager
    def _file(self, path: str) -> Iterator[tuple[int, Mount]]:
        """An O_PATH descriptor of a regular file."""
        with self._resolved(path) as steps:
            last = steps[-1]
            if last.fd < 0 or last.mount is None:
                raise PermissionError(errno.EACCES, "this part of the sandbox is not reached from outside", path)
            kind = os.fstat(last.fd).st_mode
            if stat.S_ISDIR(kind):
                raise IsADirectoryError(errno.EISDIR, "it is a folder", path)
            if not stat.S_ISREG(kind):
                raise OSError(errno.EINVAL, "it is no regular file", path)
            yield last.fd, last.mount

    @contextmanager
    def _parent(self, path: str, *, make: bool = False, follow: bool = True) -> Iterator[tuple[int, str]]:
        """The folder that holds `path`, where links lead to, opened; and the last name in it. It may be written."""
        parts = self._parts(path)
        for _ in range(_LINKS):
            if not parts:
                raise PermissionError(errno.EACCES, "it cannot be replaced", path)
            with self._walked(parts[:-1], path, make=make) as steps:
                last = steps[-1]
                link = _link_of(last.fd, parts[-1]) if follow and last.fd >= 0 and parts[-1] not in (".", "..") else ""
                if link:
                    parts = _joined(last.path, link)
                    continue
                if parts[-1] == "..":
                    raise PermissionError(errno.EACCES, "it cannot be replaced", path)
                inner = self._mounts.get(os.path.join(last.path, parts[-1])) if parts[-1] != "." else None
                if inner is not None or last.fd < 0 or last.mount is None or not last.mount.writable:
                    raise PermissionError(errno.EACCES, "this part of the sandbox is not written from outside", path)
                yield last.fd, parts[-1]
                return
        raise OSError(errno.ELOOP, "too many symbolic links", path)

    @contextmanager
    def _resolved(self, path: str) -> Iterator[list[_Step]]:
        with self._walked(self._parts(path), path) as steps:
            yield steps

    def _parts(self, path: str) -> list[str]:
        if "\0" in path:
            raise ValueError("a path holds no null characters")
        return _joined(self._workdir, path)

    @contextmanager
    def _walked(self, parts: list[str], path: str, *, make: bool = False) -> Iterator[list[_Step]]:
        """Every folder from the root of the inside to `parts`; the last may be anything that is no link."""
        steps = [self._entered("/")]
        links = 0
        try:
            waiting = list(reversed(parts))
            while waiting:
                part = waiting.pop()
                if part in ("", "."):
                    continue
                if part == "..":
                    if len(steps) > 1:
                        _close(steps.pop())
                    continue
                link = self._step(steps, part, path, make)
                if link:
                    links += 1
                    if links > _LINKS:
                        raise OSError(errno.ELOOP, "too many symbolic links", path)
                    waiting += reversed([each for each in PurePosixPath(link).parts if each != "/"])
                    if link.startswith("/"):
                        while len(steps) > 1:
                            _close(steps.pop())
            yield steps
        finally:
            for step in steps:
                _close(step)

    def _entered(self, path: str) -> _Step:
        mount = self._mounts.get(path)
        if mount is None:
            return _Step(path, -1, None)
        return _Step(path, os.open(mount.host, _O_PATH | os.O_CLOEXEC), mount)

    def _step(self, steps: list[_Step], part: str, path: str, make: bool) -> str:
        """One part further down; the target of a link instead, where there is one."""
        here = steps[-1]
        inner = os.path.join(here.path, part)
        if inner in self._mounts:
            steps.append(self._entered(inner))
            return ""
        if here.fd < 0:
            if not any(mount.startswith(f"{inner}/") for mount in self._mounts):
                raise PermissionError(errno.EACCES, "this part of the sandbox is not reached from outside", path)
            steps.append(_Step(inner, -1, None))
            return ""
        try:
            fd = os.open(part, _O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here.fd)
        except FileNotFoundError:
            if not make or here.mount is None or not here.mount.writable:
                raise FileNotFoundError(errno.ENOENT, "there is no such file or folder", path) from None
            made = self._mkdir(here.fd, part)
            fd = os.open(part, _FOLDER, dir_fd=here.fd)
            if made and self._owner is not None:
                os.chown(f"/proc/self/fd/{fd}", self._owner, self._owner)
        if stat.S_ISLNK(os.fstat(fd).st_mode):
            try:
                return os.readlink("", dir_fd=fd)
            finally:
                os.close(fd)
        steps.append(_Step(inner, fd, here.mount))
        return ""


def _joined(folder: str, path: str) -> list[str]:
    """The parts of `path` from the root, links and `..` unresolved."""
    whole = path if path.startswith("/") else f"{folder}/{path}"
    return [part for part in whole.split("/") if part]


def _link_of(folder: int, name: str) -> str:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return ""


def _close(step: _Step) -> None:
    if step.fd >= 0:
        os.close(step.fd)


def _entry(folder: int, name: str) -> Entry:
    try:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return Entry(name, "other")
    kinds = ((stat.S_ISREG, "file"), (stat.S_ISDIR, "folder"), (stat.S_ISLNK, "link"))
    for test, kind in kinds:
        if test(found.st_mode):
            return Entry(name, kind, found.st_size)  # type: ignore[arg-type]
    return Entry(name, "other")
