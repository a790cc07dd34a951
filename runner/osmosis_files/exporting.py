"""`Exporting`: a workflow on its way to a file of the SDK, and which of its keys were said there."""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from runner.build.discovery import Discovered, DiscoveryProblem, discover
from runner.build.importing import Importer, ReferenceProblem
from runner.config.config import RolloutConfig
from runner.config.names import dotted
from runner.config.reference import Reference
from runner.diag.diagnostic import Diagnostic, Report
from runner.diag.diagnostic import Path as KeyPath
from runner.osmosis_files.imported import Note
from runner.osmosis_files.keys import Kind
from runner.osmosis_files.page import Page

ADVICE = {
    "workflow": "the SDK's classes know what they are told in Python: an `AgentWorkflowConfig` made in the entrypoint",
    "tools": "the SDK's agents bring their own tools: call them in the class",
    "roles": "a grader of the SDK asks its judge by itself",
    "reward": "the `Grader` sets the one reward",
    "limits": "let the class stop by itself",
    "model": "the platform, or LiteLLM by the model's name, knows it",
    "dataset": "write a dataset of these rows, with the columns `system_prompt`, `user_prompt` and `ground_truth`",
    "profiles": "write a file for each: `--profile NAME`",
    "matrix": "write a file for each: `--set KEY=VALUE`",
    "env": "set it where the SDK runs",
    "secrets": "set them where the SDK runs",
}
"""What to do about keys that the SDK's files do not have, by table."""


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
            keys = ", ".join(dict.fromkeys(f"`{dotted(path[1:2]) or table}`" for path in paths))
            advice = ADVICE.get(table, "it stays in the workflow.toml")
            text = f"`[{table}]` {keys}: no counterpart in {_a(self.kind.name)} file; {advice}"
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
    work.said.add(path)
    parts = file.parts
    if "rollouts" in parts[:-2]:
        at = len(parts) - 1 - parts[::-1].index("rollouts", 1)
        if at < len(parts) - 2:
            if work.config.workflow.name == parts[at + 1]:
                work.said.add(("workflow", "name"))
            return Code(file, parts[at + 1], "/".join(parts[at + 2 :]), Path(*parts[:at]))
    rollout = work.config.name.replace("/", "-")
    work.said.add(("workflow", "name"))
    advice = f"the SDK looks for `rollouts/{rollout}/{file.name}` under its workspace: put the code there"
    work.note(path, advice)
    return Code(file, rollout, file.name, None)


def find_classes(work: Exporting, code: Code, environ: MutableMapping[str, str]) -> Discovered | None:
    """What the SDK would find in the entrypoint, or None with a finding. Imports it, `[env]` set in `environ` first."""
    for name, value in work.config.env.items():
        if "\0" in value:
            work.refuse("bad-value", ("env", name), f"`env.{name}` holds a zero byte", "no variable can hold one")
            return None
        environ.setdefault(name, value)
    path: KeyPath = ("workflow", "agent")
    agent = work.config.agent
    name = agent.name if isinstance(agent, Reference) else ""
    try:
        found = discover(Importer().module(f"./{code.file.name}", code.file.parent))
    except ReferenceProblem as problem:
        work.refuse(problem.code, path, problem.message, problem.label)
    except DiscoveryProblem as problem:
        work.refuse("unfit-code", path, f"the SDK would not find the agent: {problem.message}", problem.cure)
    else:
        if not name or getattr(found.workflow.value, "__name__", "") == name or found.workflow.name == name:
            return found
        message = f"the SDK would find `{found.workflow.name}` in `{code.entrypoint}`, and the agent is `{name}`"
        work.refuse("unfit-code", path, message, "leave one `AgentWorkflow` in the entrypoint")
    return None


def _module_file(agent: Reference) -> Path | None:
    inside = Path(*agent.target.split("."))
    tries = (agent.folder / inside.with_suffix(".py"), agent.folder / inside / "__init__.py")
    return next((each.resolve() for each in tries if each.is_file()), None)


def _a(word: str) -> str:
    return f"an {word}" if word[0] in "aeiou" else f"a {word}"
