"""`Preparation`: what a sandbox is given before anybody uses it: its copies, then its setup commands."""

from __future__ import annotations

import asyncio
import io
import stat
import tarfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from runner.records.failure import SandboxError
from runner.sandboxes.sandbox import Command, Sandbox

_TOLD = 1000
"""Characters of a setup command's last words that its failure says."""


@dataclass(frozen=True, slots=True)
class Copy:
    """`source` gives the path on this machine for a row (it raises `ValueError` for one that has none)."""

    source: Callable[[Mapping[str, Any]], Path]
    target: str


@runtime_checkable
class TakesTrees(Protocol):
    """A sandbox with a way of its own to be given a file or a folder; others are sent an archive."""

    async def put_tree(self, path: str, source: Path) -> None:
        """Copy a file of the host to `path`, or the contents of a folder into it. Raises `OSError`."""
        ...


class Preparation:
    """`setup` are shell commands, each with `seconds` to run. What fails is a `SandboxError` (kind "sandbox_setup")."""

    def __init__(self, copies: Sequence[Copy] = (), setup: Sequence[str] = (), seconds: float = 300.0) -> None:
        self._copies = copies
        self._setup = setup
        self._seconds = seconds

    async def __call__(self, sandbox: Sandbox, row: Mapping[str, Any]) -> None:
        for copy in self._copies:
            try:
                source = copy.source(row)
                await copy_in(sandbox, source, copy.target)
            except (OSError, ValueError) as error:
                raise SandboxError(f"it could not be given its copy: {error}", kind="sandbox_setup") from error
        for text in self._setup:
            ran = await sandbox.exec(Command(["/bin/sh", "-c", text], timeout=self._seconds))
            if ran.timed_out:
                message = f"its setup `{text}` did not end within {self._seconds:g} s"
                raise SandboxError(message, kind="sandbox_setup")
            if ran.code != 0:
                said = (ran.stderr.strip() or ran.stdout.strip()).decode("utf-8", "replace")[-_TOLD:]
                raise SandboxError(f"its setup `{text}` exited with {ran.code}: {said}", kind="sandbox_setup")


async def copy_in(sandbox: Sandbox, source: Path, target: str) -> None:
    """Copy a file of this machine to `target` inside, or the contents of a folder into it. Raises `OSError`."""
    if isinstance(sandbox, TakesTrees):
        await sandbox.put_tree(target, source)
        return
    there = await asyncio.to_thread(source.stat)
    if not stat.S_ISDIR(there.st_mode):
        name = f"{target}{source.name}" if target.endswith("/") or target in (".", "") else target
        await sandbox.put(name, await asyncio.to_thread(source.read_bytes), mode=there.st_mode & 0o777)
        return
    archive = await asyncio.to_thread(_archive, source)
    # `tar` of the image, as whoever commands run as: what it makes belongs to it.
    script = 'mkdir -p -- "$1" && tar -xf - -C "$1"'
    ran = await sandbox.exec(Command(["/bin/sh", "-c", script, "sh", target], stdin=archive, timeout=300.0))
    if ran.code != 0:
        said = ran.stderr.decode("utf-8", "replace").strip()[-_TOLD:]
        raise OSError(f"`{source}` could not be unpacked at `{target}`: {said}")


def _archive(source: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for child in sorted(source.iterdir()):
            archive.add(child, arcname=child.name, filter=_nobodys)
    return buffer.getvalue()


def _nobodys(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member
