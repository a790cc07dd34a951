"""`EventLog`: what happened inside each rollout, one JSON Lines file per rollout, for whoever debugs an agent.

A line is written when the event is heard, so a rollout that hangs or a process that is killed leaves what it did.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from runner.records.event import Event, Logged

_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


class EventLog:
    """A `Listener` that writes to `folder/<start in Unix seconds>/<rollout id, made safe>.jsonl`.

    Each line has `ts` (Unix seconds), `event` (its name in snake case) and the event's own fields; a line of
    `ctx.log_event(name, **data)` has that name and those data. Raises OSError when the folder cannot be made.
    """

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self.folder = folder / str(int(clock()))
        self.folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, event: Event) -> None:
        line = {"ts": round(self._clock(), 6), **_told(event)}
        text = json.dumps(line, ensure_ascii=False, default=_plain, separators=(",", ":"))
        with self.path(event.rollout_id).open("ab") as file:
            file.write(text.encode("utf-8", "replace") + b"\n")

    def path(self, rollout_id: str) -> Path:
        """The file of a rollout: its id as far as a file's name can hold it, and a mark that keeps ids apart."""
        stem = re.sub(r"[^A-Za-z0-9._-]+", "_", rollout_id).strip("._")[:48] or "rollout"
        mark = hashlib.sha256(rollout_id.encode("utf-8", "surrogatepass")).hexdigest()[:12]
        return self.folder / f"{stem}_{mark}.jsonl"


def _told(event: Event) -> dict[str, Any]:
    if isinstance(event, Logged):
        return {"event": event.name, "rollout_id": event.rollout_id, **event.data}
    name = _WORD.sub("_", type(event).__name__).lower()
    return {"event": name, **{item.name: getattr(event, item.name) for item in fields(event) if item.name != "at"}}


def _plain(value: Any) -> Any:
    """What JSON does not know by itself: a record as an object without its empty fields, anything else as its text."""
    if is_dataclass(value) and not isinstance(value, type):
        found = {item.name: getattr(value, item.name) for item in fields(value)}
        return {name: part for name, part in found.items() if part not in (None, "", (), {})}
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset | tuple):
        return list(value)
    return str(value)
