"""The user's code in a workflow.toml: the classes of the entrypoint by name, their configs by value."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.build.discovery import Discovered, DiscoveryProblem, Named, discover
from runner.build.importing import Importer, ReferenceProblem
from runner.config.layers import looks_secret
from runner.osmosis_files.imported import Importing
from runner.osmosis_files.keys import plain
from runner.osmosis_files.page import Table
from runner.osmosis_files.workspace import relative

GRADER = "graders.grader"


def import_code(work: Importing, table: str, *, workflow: str | None, grader: str | None) -> None:
    """Write `[workflow]` and the grader of the rollout that `table` names. Imports the entrypoint."""
    found = _discover(work, table, workflow, grader)
    if found is None:
        return
    entrypoint = relative(work.workspace.entrypoint, work.folder)
    ours = work.page.table("workflow")
    ours.set("name", work.file.get(table, "rollout"))
    ours.set("agent", f"{entrypoint}:{found.workflow.name}")
    _config(work, ours, "workflow", found.config)
    if work.file.table("grader"):
        _named_grader(work)
    elif found.grader is None:
        work.say(
            "graders", f"`{entrypoint}` holds no `Grader`: nothing scores a rollout until you add a `[graders.NAME]`"
        )
    else:
        graders = work.page.table(GRADER)
        graders.set("kind", "python")
        graders.set("call", f"{entrypoint}:{found.grader.name}")
        _config(work, graders, GRADER, found.grader_config)


def _discover(work: Importing, table: str, workflow: str | None, grader: str | None) -> Discovered | None:
    path, file = (table, "entrypoint"), work.workspace.entrypoint
    try:
        module = Importer().module(f"./{file.name}", file.parent)
        return discover(module, workflow=workflow, grader=grader)
    except ReferenceProblem as problem:
        work.refuse(problem.code, path, problem.message, problem.label, problem.note)
    except DiscoveryProblem as problem:
        work.refuse("unfit-code", path, problem.message, problem.cure)
    return None


def _config(work: Importing, ours: Table, name: str, config: Named | None) -> None:
    """The config that the entrypoint made, as the table that the file now hands to the class."""
    if config is None:
        return
    entrypoint = work.workspace.entrypoint.name
    try:
        dumped = config.value.model_dump(mode="json", exclude_unset=True)
    except Exception as error:  # it is the user's own model: whatever it raises, the file cannot hold it
        what = f"{type(error).__name__}: {error}"
        work.say(name, f"`{config.name}` of `{entrypoint}` cannot be written as TOML ({what}): set `config` by hand")
        return
    kept = _kept(work, name, config.name, dumped)
    if kept:
        ours.set("config", kept, f"`{config.name}` of `{entrypoint}`: from here on this table counts")


def _kept(work: Importing, name: str, config: str, dumped: Mapping[str, Any]) -> dict[str, Any]:
    kept = {}
    for key, value in dumped.items():
        if looks_secret((key,)) and value:
            work.say(name, f"`{config}.{key}` looks like a secret and stays out: read it from the environment")
        elif value is None:
            continue  # TOML has no null, and a key left out has the class's default
        elif not plain(value):
            work.say(name, f"`{config}.{key}` holds a value that TOML has not: set it in `config` by hand")
        else:
            kept[key] = value
    return kept


def _named_grader(work: Importing) -> None:
    """`[grader]` of the first files: the class, and an instance of its config, each as `module:name`."""
    module = work.file.get("grader", "module")
    if module is None:
        work.refuse("missing-key", ("grader",), "`[grader]` names no `module`", "add it, or remove the table")
        return
    graders = work.page.table(GRADER)
    graders.set("kind", "python")
    graders.set("call", _reference(work, module))
    named = work.file.get("grader", "config")
    if named is None:
        return
    try:
        found = Importer().find(_reference(work, named), work.folder)
    except ReferenceProblem as problem:
        work.refuse(problem.code, ("grader", "config"), problem.message, problem.label, problem.note)
        return
    _config(work, graders, GRADER, Named(named.partition(":")[2], found.value))


def _reference(work: Importing, text: str) -> str:
    """`module:name` by the module's file beside the entrypoint where it is there, else as an installed module."""
    module, _, name = text.partition(":")
    inside = Path(*module.split(".")).with_suffix(".py")
    for root in (work.workspace.entrypoint.parent, work.workspace.root):
        if (root / inside).is_file():
            return f"{relative(root / inside, work.folder)}:{name}"
    return text
