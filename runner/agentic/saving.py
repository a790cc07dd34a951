"""Trajectories on disk: a file of JSON lines for each, written as the trajectory goes.

The first line says whose it is, each further one holds a step and its place; the last says how it ended. A process that
dies leaves the steps so far. A step that was changed after it was written has a second line, and the last one counts.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from runner.agentic.trajectory import SCHEMA, Trajectory, TrajectoryStep, check_version
from runner.records.file_name import segment
from runner.store.record import encode

SUFFIX = ".jsonl"
UNFINISHED = "unfinished"
"""The `status` of a saved trajectory whose end was never written."""


class TrajectoryFile:
    """The file of one trajectory, new: a name that is taken gets a number. Raises OSError."""

    def __init__(self, folder: Path, request_id: str, **facts: Any) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path, self._descriptor = _new(folder, segment(request_id))
        self._written: list[bytes] = []
        self._write({"type": "trajectory", "schema": SCHEMA, "request_id": request_id, **facts})

    def add(self, step: TrajectoryStep) -> None:
        """Write the next step."""
        self._write_step(len(self._written), step)
        self._written.append(encode(step.to_dict()))

    def end(self, trajectory: Trajectory) -> None:
        """Write what changed since, and how it ended; close the file."""
        for index, step in enumerate(trajectory.steps):
            if index >= len(self._written) or self._written[index] != encode(step.to_dict()):
                self._write_step(index, step)
        rest = {key: value for key, value in trajectory.to_dict().items() if key not in ("schema", "steps")}
        self._write({"type": "end", "steps": len(trajectory.steps), **rest})
        self.close()

    def close(self) -> None:
        """Close the file. Idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _write_step(self, index: int, step: TrajectoryStep) -> None:
        self._write({"type": "step", "index": index, "step": step.to_dict()})

    def _write(self, record: Mapping[str, Any]) -> None:
        left = memoryview(encode(record))
        while left:
            left = left[os.write(self._descriptor, left) :]


def _new(folder: Path, name: str) -> tuple[Path, int]:
    """A file that was not there before: `name`, or `name-2`, `name-3`, …"""
    number = 1
    while True:
        path = folder / f"{name if number == 1 else f'{name}-{number}'}{SUFFIX}"
        try:
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except FileExistsError:
            number += 1


def save_trajectory(trajectory: Trajectory, folder: str | Path) -> Path:
    """Write one that is there as a whole. The path of its file. Raises OSError."""
    file = TrajectoryFile(Path(folder), trajectory.request_id)
    file.end(trajectory)
    return file.path


def is_saved(path: Path) -> bool:
    """Whether a file is one of a saved trajectory, by its first line."""
    try:
        with path.open("rb") as file:
            first = file.readline(4096)
    except OSError:
        return False
    return first.startswith(b'{"type":"trajectory","schema":')


def saved_in(folder: Path) -> Iterator[Path]:
    """The files of saved trajectories in a folder, by name."""
    return (path for path in sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: path.stem) if is_saved(path))


def holds_saved(path: Path) -> bool:
    """Whether there is a saved trajectory, or a folder of them."""
    return is_saved(path) if path.is_file() else any(True for _ in saved_in(path))


def load_trajectory(path: str | Path) -> Trajectory:
    """A saved trajectory; of one that was cut off, what there is, with `status` "unfinished" in its metadata.

    Raises ValueError for a file that is none, and OSError.
    """
    path = Path(path)
    lines = path.read_bytes().split(b"\n")
    head, *rest = [_read(line, path, number) for number, line in enumerate(lines[:-1], 1)] or [{}]
    if head.get("type") != "trajectory":
        raise ValueError(f"{path}: it is no saved trajectory")
    check_version(head.get("schema"))
    steps: dict[int, Any] = {}
    end: dict[str, Any] | None = None
    for record in rest:
        if record.get("type") == "step":
            steps[record["index"]] = record["step"]
        elif record.get("type") == "end":
            end = record
    facts = {key: value for key, value in (end or head).items() if key not in ("type", "schema", "steps", "repaired")}
    if end is None:
        facts["metadata"] = {**(facts.get("metadata") or {}), "status": UNFINISHED, "stop_reason": UNFINISHED}
    return Trajectory.from_dict({**facts, "steps": [steps[index] for index in sorted(steps)]})


def _read(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise ValueError(f"{path}:{number}: is not JSON: {error}") from None
    if not isinstance(record, dict):
        raise ValueError(f"{path}:{number}: is not a record")
    return record
