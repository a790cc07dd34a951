"""`Exporting`: a workflow on its way to a file of the SDK, and which of its keys were said there."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.config.config import RolloutConfig
from runner.config.names import dotted
from runner.config.reference import Reference
from runner.diag.diagnostic import Diagnostic, Report
from runner.diag.diagnostic import Path as KeyPath
from runner.osmosis_files.imported import Note
from runner.osmosis_files.keys import Kind
from runner.osmosis_files.page import Page


@dataclass
class Exporting:
    """The config, the page being written, findings, notes, and the paths of the config that are said or explained."""

    config: RolloutConfig
    kind: Kind
    page: Page
    report: Report = field(default_factory=Report)
    notes: list[Note] = field(default_factory=list)
    said: set[KeyPath] = field(default_factory=set)

    def set(self, table: str, key: str, value: Any, *paths: KeyPath, comment: str = "") -> None:
        """Write a key that says what is at `paths` of the config."""
        self.page.table(table).set(key, value, comment)
        self.said.update(paths)

    def note(self, path: KeyPath, text: str) -> None:
        """Explain what becomes of `path`, where somebody wrote it."""
        self.said.add(path)
        place = self.config.origins.key_place(path)
        if place is not None:
            self.page.tail.comment(f"{dotted(path)}: {text}")
            self.notes.append(Note(f"`{dotted(path)}`: {text}", place))

    def refuse(self, code: str, path: KeyPath, message: str, label: str) -> None:
        """A finding at `path`, or at the table around it that somebody wrote."""
        place = None
        for size in range(len(path), 0, -1):
            place = place or self.config.origins.value_place(path[:size])
        self.report.add(Diagnostic(code, message, place, label))

    def left_out(self) -> None:
        """A note for each table of the file with keys that were not said, naming them."""
        tables: dict[str, list[KeyPath]] = {}
        for path, _ in self.config.origins.leaves():
            is_said = any(path[: len(one)] == one or one[: len(path)] == path for one in self.said)
            if not is_said and path[0] not in ("schema", "extends"):
                tables.setdefault(str(path[0]), []).append(path)
        for table, paths in tables.items():
            keys = ", ".join(dict.fromkeys(f"`{dotted(path[1:]) or table}`" for path in paths))
            text = f"`[{table}]` {keys}: no counterpart in {_a(self.kind.name)} file of the SDK"
            self.page.tail.comment(text)
            self.notes.append(Note(text, self.config.origins.key_place(paths[0])))


@dataclass(frozen=True, slots=True)
class Code:
    """The file of the agent, absolute, in terms of the SDK: a rollout's name, the entrypoint in it, the root above."""

    file: Path
    rollout: str
    entrypoint: str
    root: Path | None


def find_code(work: Exporting) -> Code | None:
    """Where the agent's class is, or None with a finding: the SDK runs classes in Python files only."""
    agent = work.config.agent
    path: KeyPath = ("workflow", "agent")
    if not isinstance(agent, Reference):
        message = f'the agent "{agent}" is declared in the file, and the SDK runs an `AgentWorkflow` of a Python file'
        work.refuse("bad-value", path, message, "write the agent as a class, and name it here")
        return None
    file = agent.file or _module_file(agent)
    if file is None or not file.is_file():
        message = f"`{agent.text}` is in no file of this project"
        work.refuse("bad-value", path, message, "name it as `./file.py:Class`")
        return None
    work.said.update({path, ("workflow", "name")})
    parts = file.parts
    if "rollouts" in parts[:-2]:
        at = len(parts) - 1 - parts[::-1].index("rollouts", 1)
        if at < len(parts) - 2:
            return Code(file, parts[at + 1], "/".join(parts[at + 2 :]), Path(*parts[:at]))
    name = work.config.name.replace("/", "-")
    advice = f"the SDK looks for `rollouts/{name}/{file.name}` under its workspace: put the code there"
    work.note(path, advice)
    return Code(file, name, file.name, None)


def _module_file(agent: Reference) -> Path | None:
    inside = Path(*agent.target.split("."))
    tries = (agent.folder / inside.with_suffix(".py"), agent.folder / inside / "__init__.py")
    return next((Path(os.path.abspath(each)) for each in tries if each.is_file()), None)


def _a(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"
