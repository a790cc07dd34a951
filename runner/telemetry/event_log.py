"""`EventLog`: what happened inside each rollout, one JSON Lines file per rollout, for whoever debugs an agent.

An event becomes its line when it is heard and is on the disk some 20 ms later, so a rollout that hangs or a process
that is killed leaves what it did; another thread writes to the disk, so ten thousand rollouts do not wait for it.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from runner.records.event import AgentEnded, Event, Logged
from runner.records.file_name import file_name, segment
from runner.telemetry.line_writer import LineWriter

_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")
_ENVELOPE = frozenset({"ts", "event", "rollout_id"})
_DEEPEST = 50
"""Levels of an author's data that are written down when they have to be mended."""


class EventLog:
    """A `Listener` that writes to `folder/<start in Unix seconds>/<rollout id, made safe>.jsonl`.

    Each line has `ts` (Unix seconds), `event` (its name in snake case) and the event's own fields; a line of
    `ctx.log_event(name, **data)` has that name and those data, where `data.` is put before a key that is one of ours.
    Raises OSError when the folder cannot be made; a disk that fills up later is one warning in the log.
    Without `stamped` there is no folder of the start: files are `folder/<rollout id>.jsonl`, and a later start goes on
    with them, as the first generation's `create_app(debug_dir=...)` had it.
    """

    _stamped = True

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time, *, stamped: bool = True) -> None:
        self._clock = clock
        self._stamped = stamped
        self.folder = folder / str(int(clock())) if stamped else folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self._writer = LineWriter(self.path, f"event logs in {self.folder} cannot be written")

    def __call__(self, event: Event) -> None:
        line = {"ts": round(self._clock(), 6), **_told(event)}
        try:
            text = _encode(line)
        except (TypeError, ValueError, RecursionError):
            text = _encode(_mended(line))
        self._writer.write(event.rollout_id, text.encode("utf-8", "replace") + b"\n")

    def path(self, rollout_id: str) -> Path:
        """The file of a rollout: its id as far as a file's name can hold it, and a mark that keeps ids apart."""
        name = file_name(rollout_id) if self._stamped else segment(rollout_id)
        return self.folder / f"{name}.jsonl"

    def flush(self) -> None:
        """Return when everything that was heard is written."""
        self._writer.flush()

    def close(self) -> None:
        """Write what is left; what is heard afterwards is lost. Idempotent; happens by itself when the process ends."""
        self._writer.close()


def _told(event: Event) -> dict[str, Any]:
    if isinstance(event, Logged):
        return {"event": event.name, "rollout_id": event.rollout_id, **_apart(event.data)}
    if isinstance(event, AgentEnded):
        return {"event": "agent_ended", "rollout_id": event.rollout_id, "stop_reason": event.left.stop_reason}
    name, names = _shape(type(event))
    return {"event": name, **{field: getattr(event, field) for field in names}}


_shapes: dict[type, tuple[str, tuple[str, ...]]] = {}


def _shape(kind: type[Event]) -> tuple[str, tuple[str, ...]]:
    """The name of an event, and its fields: looked up once for each kind."""
    shape = _shapes.get(kind)
    if shape is None:
        names = tuple(item.name for item in fields(kind) if item.name != "at")
        shape = _shapes[kind] = _WORD.sub("_", kind.__name__).lower(), names
    return shape


def _apart(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """An author's data without a key that would pass itself off as ours."""
    if _ENVELOPE.isdisjoint(data):
        return data
    free = {key: value for key, value in data.items() if key not in _ENVELOPE}
    for key in _ENVELOPE.intersection(data):
        name = f"data.{key}"
        while name in data:
            name = f"data.{name}"
        free[name] = data[key]
    return free


def _plain(value: Any) -> Any:
    """What JSON does not know by itself: a record as an object without its empty fields, anything else as its text."""
    if is_dataclass(value) and not isinstance(value, type):
        found = {item.name: getattr(value, item.name) for item in fields(value)}
        return {name: part for name, part in found.items() if part is not False and part not in (None, "", (), {})}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    return str(value)


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain, separators=(",", ":")).encode


def _mended(value: Any, depth: int = 0) -> Any:
    """A value that JSON could not take: odd keys and numbers as their text, what is too deep or circular cut off."""
    if depth > _DEEPEST:
        return "..."
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return [_mended(item, depth + 1) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _mended(item, depth + 1) for key, item in value.items()}
    try:
        plain = _plain(value)
    except Exception as error:
        return f"<{type(value).__name__}, whose text cannot be had: {type(error).__name__}>"
    return plain if isinstance(plain, str) else _mended(plain, depth + 1)
