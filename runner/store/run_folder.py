"""`RunFolder`: the files of one run, `runs/<name>/`.

Whole files are replaced in one step (written beside, synced, renamed), so a reader sees the old or the new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

from runner.store.errors import StoreError, not_written
from runner.store.lock import RunLock

SCHEMA = "run/1"
"""The version of a run folder, in its manifest."""

_OURS = frozenset({"manifest.json", "rollouts.jsonl", "rollouts.torn", "summary.json", "report.html", "log.txt"})


class RunFolder:
    """One run on disk. Nothing is touched until a method that says so is called."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest_path = path / "manifest.json"
        self.journal_path = path / "rollouts.jsonl"
        self.summary_path = path / "summary.json"
        self.log_path = path / "log.txt"
        self.lock_path = path / "run.lock"

    @classmethod
    def create(cls, path: Path) -> RunFolder:
        """The run at `path`, made if it is not there. Raises `StoreError` if something else lies there."""
        folder = cls(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise StoreError(f"{path}: is a file; the run's folder goes there", "choose another `--output`") from None
        except OSError as error:
            raise not_written(path, error, "choose another `--output`", "made") from None
        folder._refuse_strangers()
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """The run that is at `path` (the folder, or a file in it). Raises `StoreError` if there is none."""
        if path.is_file() and path.name in _OURS:
            path = path.parent
        if not path.exists():
            raise StoreError(f"{path}: there is no such run", _runs_beside(path))
        if not path.is_dir():
            raise StoreError(f"{path}: is a file, not a run's folder", _runs_beside(path))
        folder = cls(path)
        if not folder.manifest_path.is_file():
            raise StoreError(f"{path}: is not a run: it has no manifest.json", _runs_beside(path / "x"))
        folder.manifest  # noqa: B018 (reads and checks it)
        return folder

    @property
    def is_new(self) -> bool:
        """True as long as no manifest was written."""
        return not self.manifest_path.exists()

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What `write_manifest` wrote. Raises `StoreError` for another version or a file that is none."""
        manifest = self._read(self.manifest_path)
        check_schema(manifest.get("schema"), SCHEMA, str(self.manifest_path))
        return manifest

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Replace the manifest; `schema` is set."""
        content = {"schema": SCHEMA, **{key: value for key, value in manifest.items() if key != "schema"}}
        write_json(self.manifest_path, content)
        self.__dict__.pop("manifest", None)

    def summary(self) -> dict[str, Any] | None:
        """The summary, or None if the run has not written one."""
        return self._read(self.summary_path) if self.summary_path.exists() else None

    def write_summary(self, summary: Mapping[str, Any]) -> None:
        write_json(self.summary_path, summary)

    def lock(self) -> RunLock:
        """Take the run for this process, and sweep away what a killed one left half written. Raises `RunLocked`."""
        lock = RunLock.acquire(self.lock_path)
        for name in _OURS:
            for half in self.path.glob(f".{name}.*"):
                half.unlink(missing_ok=True)
        return lock

    def discard_if_unused(self) -> None:
        """Remove the folder if the command ended before anything was written. Call it with the lock held."""
        if not self.is_new:
            return
        self.lock_path.unlink(missing_ok=True)
        with suppress(OSError):  # whatever else lies there is not ours to remove
            self.path.rmdir()

    def archive(self) -> Path:
        """Move the whole run to `<name>.<date>-<time>` beside it, and return that path; nothing is deleted.

        Call it with the lock held, then `create` the folder and take its lock before releasing the old one.
        """
        stamp = time.strftime("%Y%m%d-%H%M%S")
        for count in range(1, 1000):
            target = self.path.with_name(f"{self.path.name}.{stamp}" + (f"-{count}" if count > 1 else ""))
            if target.exists():
                continue
            try:
                self.path.rename(target)
            except OSError as error:
                raise StoreError(f"{self.path}: cannot be moved to {target.name}: {error.strerror}") from None
            sync_folder(self.path.parent)
            self.__dict__.pop("manifest", None)
            return target
        raise StoreError(f"{self.path}: a thousand archives of this second exist")

    def _refuse_strangers(self) -> None:
        if self.manifest_path.exists():
            self.manifest  # noqa: B018 (reads and checks it)
            return
        if self.journal_path.exists():
            raise StoreError(
                f"{self.path}: has rollouts.jsonl and no manifest.json, so nobody knows what was run",
                "use `--fresh` to move it aside, or another `--output`",
            )
        found = [each.name for each in self.path.iterdir() if not _is_ours(each.name)]
        if found:
            shown = ", ".join(sorted(found)[:3])
            raise StoreError(f"{self.path}: is not a run: it holds {shown}", "choose another `--output`")

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            value = json.loads(path.read_bytes())
        except OSError as error:
            raise StoreError(f"{path}: cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise StoreError(f"{path}: is not JSON: {error}", "the run can be moved aside with `--fresh`") from None
        if not isinstance(value, dict):
            raise StoreError(f"{path}: holds no JSON object", "the run can be moved aside with `--fresh`")
        return value


def _is_ours(name: str) -> bool:
    """Also what `write_whole` had not finished when its process was killed."""
    return name == "run.lock" or name in _OURS or (name.startswith(".") and name[1:].rpartition(".")[0] in _OURS)


def check_schema(found: Any, ours: str, where: str) -> None:
    """Refuse what another version wrote; `where` begins the message."""
    family, _, version = ours.partition("/")
    match = re.fullmatch(rf"{family}/(\d+)", found) if isinstance(found, str) else None
    if match is None:
        raise StoreError(f"{where}: is not from osmosis-run: its `schema` is {found!r}, not {ours!r}")
    if int(match[1]) > int(version):
        raise StoreError(
            f"{where}: written by a newer osmosis-run ({found}; this one reads {ours})", "upgrade osmosis-run"
        )
    if int(match[1]) < int(version):
        raise StoreError(f"{where}: written by an older osmosis-run ({found}; this one reads {ours})")


def safe_name(name: str) -> str:
    """`name` as a folder's name: letters, digits, `.`, `_`, `-`; never empty, hidden, or longer than 100."""
    safe = re.sub(r"[^\w.-]+", "-", name).strip(".-_ ")
    return safe[:100].rstrip(".-_") or "run"


def distinct_name(name: str) -> str:
    """`safe_name` for a matrix cell, `key=value,key=value`: where other signs are lost, a digest tells cells apart."""
    safe = safe_name(name)
    if safe == re.sub("[=,]", "-", name):
        return safe
    return f"{safe[:91]}-{hashlib.blake2s(name.encode('utf-8', 'surrogatepass'), digest_size=4).hexdigest()}"


def write_json(path: Path, content: Any) -> None:
    """Replace `path` in one step. Raises `StoreError`."""
    text = json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False)
    write_whole(path, text.encode("utf-8", "replace") + b"\n")


def write_whole(path: Path, content: bytes) -> None:
    """Replace `path` in one step: written beside it, synced, renamed. Raises `StoreError`."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise not_written(path, error) from None


def sync_folder(path: Path) -> None:
    """Make a rename in `path` last."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _runs_beside(path: Path) -> str:
    from difflib import get_close_matches

    try:
        names = [each.parent.name for each in path.parent.glob("*/manifest.json")]
    except OSError:
        return ""
    near = get_close_matches(path.name, names, n=1, cutoff=0.6)
    if near:
        return f"did you mean `{path.parent / near[0]}`?"
    return f"runs there: {', '.join(sorted(names)[:8])}" if names else ""
