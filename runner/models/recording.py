"""`RecordingModel`: any model, with every answer written down so that `ReplayModel` can give it again.

One JSON object a line, in one write, flushed at once: a killed run leaves at most one torn last line, which the next
run removes before it appends.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from threading import Lock
from typing import Any

from runner.models.model import Model
from runner.records.completion import Caller, Completion, Sampling, ToolSpec, Usage
from runner.records.failure import ConfigFailure, ContextOverflow, ModelError, ModelRefused
from runner.records.message import Message

SCHEMA = "recording/1"
FINAL_ERRORS: dict[str, type[ModelError]] = {error.kind: error for error in (ContextOverflow, ModelRefused)}
"""Errors that are an answer: asking again would give the same, so they are recorded and replayed."""


class Recording:
    """The file. Shared by the models of all roles; safe from any thread."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        _mend(self.path)
        self._file = self.path.open("ab", buffering=0)
        self._lock = Lock()
        self._broken = ""

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one line. Raises `ConfigFailure` (a full disk), then and from then on; ValueError after `close`."""
        data = json.dumps(line, separators=(",", ":"), allow_nan=True).encode() + b"\n"
        with self._lock:
            if not self._broken:
                self._broken = self._write(data)
            if self._broken:  # a line after half a line would be lost with it
                words = f"the recording {self.path} cannot be written: {self._broken}"
                raise ConfigFailure(words, kind="recording_unwritable")

    def _write(self, data: bytes) -> str:
        left = memoryview(data)
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            return (error.strerror or str(error)).lower()
        return ""

    def close(self) -> None:
        """Put everything on disk. Closing twice is no mistake."""
        with self._lock:
            if not self._file.closed:
                try:
                    os.fsync(self._file.fileno())
                except OSError as error:
                    if error.errno != errno.EINVAL:  # a pipe or a device, which has no disk
                        raise
                finally:
                    self._file.close()


def _mend(path: Path) -> None:
    """Remove the torn last line that a killed run may have left."""
    if not path.exists():
        return
    with path.open("rb+") as file:
        size = file.seek(0, os.SEEK_END)
        keep = size
        while keep > 0:
            start = max(0, keep - 65536)
            file.seek(start)
            newline = file.read(keep - start).rfind(b"\n")
            if newline >= 0:
                keep = start + newline + 1
                break
            keep = start
        if keep < size:
            file.truncate(keep)


def request_of(messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, role: str) -> dict[str, Any]:
    """Everything that an answer depends on, as JSON values."""
    settings = {field.name: getattr(sampling, field.name) for field in fields(sampling)}
    settings["stop"], settings["extra"] = list(sampling.stop), dict(sampling.extra)
    set_ones = {name: value for name, value in settings.items() if value not in (None, [], {})}
    return {
        "role": role,
        "messages": list(messages),
        "tools": [tool.wire()["function"] for tool in tools],
        "sampling": set_ones,
    }


def canonical(value: Any) -> str:
    """The same text for equal values, whatever the order of their keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)


def digest(value: Any) -> str:
    """SHA-256 of the canonical text, in hexadecimal."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def row_digest(row: Mapping[str, Any]) -> str:
    """A short name of a row by its content."""
    return digest(dict(row))[:16]


class Ordinals:
    """Numbers equal requests of one rollout: 0, 1, 2, … in the order they are asked."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}

    def next(self, caller: Caller, key: str) -> int:
        # Only the hash is kept: a run may make a million calls.
        place = hash((caller.rollout_id, caller.attempt, key))
        ordinal = self._seen.get(place, 0)
        self._seen[place] = ordinal + 1
        return ordinal


class RecordingModel:
    """Answers as `inner` does, and records it. `recording` may be a path, which is then closed with the model."""

    def __init__(self, inner: Model, recording: Recording | Path | str) -> None:
        self._inner = inner
        self._owned = not isinstance(recording, Recording)
        self._recording = recording if isinstance(recording, Recording) else Recording(recording)
        self._ordinals = Ordinals()

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, caller: Caller
    ) -> Completion:
        """As `inner`; raises what it raises."""
        request = request_of(messages, tools, sampling, caller.role)
        key = digest(request)
        line = {
            "schema": SCHEMA,
            "key": key,
            "ordinal": self._ordinals.next(caller, key),
            "row": row_digest(caller.row),
            "attempt": caller.attempt,
            "request": request,
        }
        try:
            completion = await self._inner.complete(messages, tools, sampling, caller)
        except tuple(FINAL_ERRORS.values()) as error:
            self._recording.append({**line, "error": {"kind": error.kind, "message": str(error)}})
            raise
        self._recording.append({**line, "completion": completion_to_json(completion)})
        return completion

    async def aclose(self) -> None:
        """Close the inner model, and the recording if it is this model's own."""
        try:
            await self._inner.aclose()
        finally:
            if self._owned:
                self._recording.close()


def completion_to_json(completion: Completion) -> dict[str, Any]:
    """All that is set, as JSON values."""
    values = {field.name: getattr(completion, field.name) for field in fields(completion)}
    values["usage"] = None if completion.usage is None else asdict(completion.usage)
    values["extra"] = dict(completion.extra)
    return {name: value for name, value in values.items() if value not in (None, {})}


def completion_from_json(values: Mapping[str, Any]) -> Completion:
    """The way back. Raises TypeError, KeyError for what is no completion."""
    rest = {**values}
    usage = rest.pop("usage", None)
    return Completion(usage=None if usage is None else Usage(**usage), **rest)
