"""`ReplayModel`: answers from a recording, exactly. A request that was not recorded is a `ReplayMiss` that says why.

Only places in the file are kept in memory; a line is read when it is asked for. Numbers (usage, cost, latency) are
those of the recording.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runner.models.recording import (
    FINAL_ERRORS,
    SCHEMA,
    Ordinals,
    canonical,
    completion_from_json,
    digest,
    request_of,
    row_digest,
)
from runner.records.completion import Caller, Completion, Sampling, ToolSpec
from runner.records.failure import ReplayMiss
from runner.records.message import Message, text_of

_ANEW = "record anew with `osmosis-run eval --record {path}`"


class ReplayModel:
    """Gives the answers that `RecordingModel` wrote to `path`. Raises ReplayMiss if the file cannot be used."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._ordinals = Ordinals()
        # (request, attempt) -> row -> ordinal -> offset in the file
        self._recorded: dict[tuple[str, int], dict[str, dict[int, int]]] = {}
        self._by_row: dict[tuple[str, str], list[int]] = {}
        self._index()

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, caller: Caller
    ) -> Completion:
        """The recorded answer to this request of this row and attempt. Raises ReplayMiss, or the recorded error."""
        request = request_of(messages, tools, sampling, caller.role)
        key, row = digest(request), row_digest(caller.row)
        ordinal = self._ordinals.next(caller, key)
        rows = self._recorded.get((key, caller.attempt), {})
        # A row whose other columns were edited still asks the same: its answers are those of the only row that did.
        answers = rows.get(row) or (next(iter(rows.values())) if len(rows) == 1 else {})
        if ordinal >= len(answers):
            raise ReplayMiss(self._miss(request, row, caller, ordinal), where=str(self.path))
        # By rank, not by number: a try that failed took a number and left no answer.
        line = self._line(answers[sorted(answers)[ordinal]])
        error = line.get("error")
        if error is not None:
            raise FINAL_ERRORS[error["kind"]](error["message"], where=str(self.path))
        return completion_from_json(line["completion"])

    async def aclose(self) -> None:
        """Nothing is open."""

    def _index(self) -> None:
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            raise ReplayMiss(f"there is no recording at {self.path}; {self._anew()}") from None
        except OSError as error:
            raise ReplayMiss(f"the recording {self.path} cannot be read: {error.strerror}") from None
        with file:
            offset = 0
            for number, data in enumerate(file, 1):
                self._add(number, data, offset)
                offset += len(data)

    def _add(self, number: int, data: bytes, offset: int) -> None:
        if not data.endswith(b"\n"):
            return  # the torn last line of a killed run
        try:
            line = json.loads(data)
            if line["schema"] != SCHEMA:
                raise ReplayMiss(f"{self.path}:{number}: this is not a recording of this version; {self._anew()}")
            row, ordinal, request = line["row"], line["ordinal"], (line["key"], line["attempt"])
            role = line["request"]["role"]
        except (ValueError, KeyError, TypeError):
            raise ReplayMiss(f"{self.path}:{number}: this is not a line of a recording; {self._anew()}") from None
        # Recorded twice (a rollout played again after a resume): the last one counts.
        self._recorded.setdefault(request, {}).setdefault(row, {})[ordinal] = offset
        self._by_row.setdefault((row, role), []).append(offset)

    def _line(self, offset: int) -> dict[str, Any]:
        with self.path.open("rb") as file:
            file.seek(offset)
            line: dict[str, Any] = json.loads(file.readline())
        return line

    def _anew(self) -> str:
        return _ANEW.format(path=self.path)

    def _miss(self, request: dict[str, Any], row: str, caller: Caller, ordinal: int) -> str:
        """What was asked, what the nearest recorded request had instead, and what to do."""
        turn = sum(message.get("role") == "assistant" for message in request["messages"])
        asked = (
            f"the recording {self.path} has no answer for role `{caller.role}`, attempt {caller.attempt}, turn {turn}"
        )
        offsets = self._by_row.get((row, caller.role))
        if not offsets:
            known = any(known_row == row for known_row, _ in self._by_row)
            what = f"it has nothing for role `{caller.role}` of this row" if known else "it has nothing for this row"
            return f"{asked}: {what}; use the dataset it was made with, or {self._anew()}"
        lines = [self._line(offset) for offset in offsets]
        near = max(lines, key=lambda line: (*_nearness(line["request"], request), line["attempt"] == caller.attempt))
        difference = _difference(near["request"], request)
        if not difference and near["attempt"] != caller.attempt:
            attempts = sorted({line["attempt"] for line in lines})
            difference = f"this request was recorded only for attempt {', '.join(map(str, attempts))}"
        elif not difference:
            difference = f"this request was recorded {ordinal} time{'s' * (ordinal != 1)} and is asked once more"
        return f"{asked}: {difference}; undo that change in the workflow, or {self._anew()}"


def _nearness(recorded: dict[str, Any], asked: dict[str, Any]) -> tuple[int, int, int]:
    """How alike two requests are: messages that agree from the start, equal length, equal other parts."""
    same = _first_difference(recorded["messages"], asked["messages"])
    parts = sum(canonical(recorded[part]) == canonical(asked[part]) for part in ("tools", "sampling"))
    return same, -abs(len(recorded["messages"]) - len(asked["messages"])), parts


def _first_difference(old: list[Message], new: list[Message]) -> int:
    for index, (before, after) in enumerate(zip(old, new, strict=False)):
        if canonical(before) != canonical(after):
            return index
    return min(len(old), len(new))


def _difference(recorded: dict[str, Any], asked: dict[str, Any]) -> str:
    """What differs first, in words; empty if nothing does."""
    old, new = recorded["messages"], asked["messages"]
    index = _first_difference(old, new)
    if index < min(len(old), len(new)):
        before, after = _cut(old[index], new[index]), _cut(new[index], old[index])
        return f"message {index + 1} ({new[index].get('role')}) differs: recorded {before}, asked {after}"
    if len(old) != len(new):
        return f"the recorded conversation has {len(old)} messages, this one {len(new)}"
    if canonical(recorded["tools"]) != canonical(asked["tools"]):
        return f"the tools differ: {_tool_difference(recorded['tools'], asked['tools'])}"
    for key in sorted({*recorded["sampling"], *asked["sampling"]}):
        before, after = recorded["sampling"].get(key), asked["sampling"].get(key)
        if canonical(before) != canonical(after):
            return f"sampling.{key} differs: recorded {before!r}, asked {after!r}"
    return ""


def _cut(message: Message, other: Message) -> str:
    """A message's text near the place where it leaves the other's, quoted."""
    text, against = text_of(message), text_of(other)
    if text == against:
        text, against = canonical(message), canonical(other)
    start = next(
        (n for n, (a, b) in enumerate(zip(text, against, strict=False)) if a != b), min(len(text), len(against))
    )
    start = max(0, start - 20)
    piece = text[start : start + 60]
    return repr(("…" if start else "") + piece + ("…" if start + 60 < len(text) else ""))


def _tool_difference(recorded: list[Any], asked: list[Any]) -> str:
    old, new = ({tool["name"]: canonical(tool) for tool in tools} for tools in (recorded, asked))
    for name in new:
        if name not in old:
            return f"`{name}` is new"
        if old[name] != new[name]:
            return f"`{name}` was described differently"
    gone = [name for name in old if name not in new]
    return f"`{gone[0]}` is gone" if gone else "their order changed"
