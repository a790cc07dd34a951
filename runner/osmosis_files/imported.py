"""`Importing`: a file of the SDK on its way to a workflow.toml, and the notes on what could not come along."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.config.quantity import duration_text, parse_duration
from runner.diag.diagnostic import Diagnostic, Place
from runner.osmosis_files.page import Page, value_text
from runner.osmosis_files.reading import OsmosisFile
from runner.osmosis_files.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Note:
    """What became of one key, and what to do about it. `place` is where the file says it."""

    text: str
    place: Place | None

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" if self.place is not None else self.text


@dataclass
class Importing:
    """The file, the page being written for a workflow.toml in `folder`, and the notes so far."""

    file: OsmosisFile
    folder: Path
    workspace: Workspace
    page: Page = field(default_factory=Page)
    notes: list[Note] = field(default_factory=list)

    def note(self, ours: str | None, path: tuple[str | int, ...], text: str, *, secret: bool = False) -> None:
        """Say what becomes of the key at `path`: a comment in our table `ours` (or at the end), and a note.

        The comment repeats the value, unless it is a `secret`.
        """
        table = self.page.tail if ours is None else self.page.table(ours)
        value: Any = self.file.document.data
        for part in path:
            value = value[part]
        if isinstance(value, dict):
            table.comment(f"[{'.'.join(map(str, path))}]: {text}")
        else:
            # Written so, nothing that hides what follows a secret's name will hide this comment's words.
            shown = " (left out)" if secret else f" = {value_text(value)}"
            table.comment(f"[{path[0]}] {'.'.join(map(str, path[1:]))}{shown}: {text}")
        name = f"`[{path[0]}] {'.'.join(map(str, path[1:]))}`" if len(path) > 1 else f"`[{path[0]}]`"
        self.notes.append(Note(f"{name}: {text}", self.file.place(*path, key=True)))

    def say(self, ours: str, text: str) -> None:
        """A comment and a note about something the file does not say."""
        self.page.table(ours).comment(text)
        self.notes.append(Note(text, None))

    def in_order(self) -> list[Note]:
        """The notes as the file reads, those about something it does not say last."""
        return sorted(self.notes, key=lambda note: (note.place is None, note.place.start if note.place else 0))

    def refuse(self, code: str, path: tuple[str | int, ...], message: str, label: str, *notes: str) -> None:
        """A finding at the value of `path`."""
        self.file.report.add(
            Diagnostic(code, message, self.file.place(*path), label, notes=tuple(note for note in notes if note))
        )


def seconds_text(seconds: float) -> str:
    """A duration that reads back as exactly `seconds`."""
    short = duration_text(seconds)
    return short if parse_duration(short) == seconds else f"{seconds:f}s"
