"""The files under a folder of a sandbox, without what ignore files, hidden names and the file's own list leave out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from runner.sandboxes.sandbox import Sandbox

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

EXCLUDED = (".git", ".svn", "__pycache__", "node_modules", ".pytest_cache", ".mypy_cache", ".tox", "venv", ".venv")
"""Folders that are never entered where the file names none."""
_IGNORE_FILES = (".gitignore", ".ignore")
_LARGEST_IGNORE_FILE = 1 << 20
_DEEPEST = 100


@dataclass(frozen=True, slots=True)
class Found:
    """Something in the tree: its path from the folder that was searched, in POSIX form."""

    path: str
    kind: Literal["file", "folder"]
    size: int = 0


async def walk(sandbox: Sandbox, root: str, excluded: Sequence[str] = EXCLUDED) -> AsyncIterator[Found]:
    """Everything under `root`, a folder before what it holds, by name. Symbolic links are not followed.

    Raises `OSError` when `root` itself cannot be listed; a folder inside that cannot be is passed over.
    """
    async for each in _under(sandbox, root, "", frozenset(excluded), ()):
        yield each


async def _under(
    sandbox: Sandbox, root: str, inside: str, excluded: frozenset[str], rules: tuple[tuple[str, GitIgnoreSpec], ...]
) -> AsyncIterator[Found]:
    if inside.count("/") > _DEEPEST:
        return
    try:
        entries = await sandbox.list(joined(root, inside))
    except OSError:
        if not inside:
            raise
        return
    names = {entry.name for entry in entries if entry.kind == "file"}
    rules = (*rules, *[(inside, spec) for spec in await _rules(sandbox, joined(root, inside), names)])
    for entry in sorted(entries, key=lambda entry: entry.name.encode("utf-8", "surrogateescape")):
        path = joined(inside, entry.name)
        if entry.kind not in ("file", "folder") or entry.name.startswith(".") or entry.name in excluded:
            continue
        folder = entry.kind == "folder"
        if _ignored(path, folder, rules):
            continue
        yield Found(path, "folder" if folder else "file", entry.size)
        if folder:
            async for each in _under(sandbox, root, path, excluded, rules):
                yield each


async def _rules(sandbox: Sandbox, folder: str, names: set[str]) -> list[GitIgnoreSpec]:
    specs: list[GitIgnoreSpec] = []
    for name in _IGNORE_FILES:
        if name in names:
            from pathspec import GitIgnoreSpec

            with suppress(OSError):
                data = await sandbox.get(joined(folder, name), limit=_LARGEST_IGNORE_FILE)
                lines = data.decode("utf-8", "replace").splitlines()
                specs.append(GitIgnoreSpec.from_lines([line for line in lines if line.strip() != "!"]))
    return specs


def _ignored(path: str, folder: bool, rules: Sequence[tuple[str, GitIgnoreSpec]]) -> bool:
    """By the rule closest to the file that says anything about it."""
    for base, spec in reversed(rules):
        inside = path[len(base) + 1 :] if base else path
        verdict: bool | None = spec.check_file(inside + "/" if folder else inside).include
        if verdict is not None:
            return verdict
    return False


def joined(folder: str, name: str) -> str:
    """A path below a folder; either may be empty."""
    if not name or not folder:
        return folder or name
    return f"{folder.rstrip('/')}/{name}" if folder != "." else name
