"""`osmosis-run init`: write a new project that validates, tests and runs without a key.

The projects are real files under `runner/cli/projects`; only the name is filled in. The schema that their first line
names is written beside them, because an editor cannot find one inside an installed package.
"""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli.console import console
from runner.cli.exit import CommandError, Exit

PROJECTS = Path(__file__).parent.parent / "projects"

TEMPLATES = {
    "tools": "an agent with a tool and two graders",
    "chat": "one question, one answer, one grader",
    "python": "an AgentWorkflow and a Grader of your own",
    "strands": "an agent of Strands with tools of its own and of the file",
}

RENAMED = {"gitignore": ".gitignore"}
"""A `.gitignore` inside the package would hide files from the wheel."""

SCHEMA = ".osmosis-run/workflow.schema.json"
"""Where the `#:schema` line of a project's workflow.toml points to."""


@click.command("init")
@click.argument("folder", metavar="[DIR]", type=click.Path(path_type=Path), default=Path())
@click.option(
    "--template",
    type=click.Choice(list(TEMPLATES)),
    default="tools",
    show_default=True,
    help="; ".join(f"{name}: {what}" for name, what in TEMPLATES.items()) + ".",
)
def command(folder: Path, template: str) -> Exit:
    """Write a new project to DIR, or to the current folder.

    Files that are already there are never touched.
    """
    files = project_files(template)
    _refuse_clashes(folder, files)
    name = _project_name(folder)
    for relative, source in files.items():
        target = folder / relative
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(source.read_text(encoding="utf-8").replace("@NAME@", name), encoding="utf-8")
        console().say(f"  {target}")
    _write_schema(folder / SCHEMA)
    console().say(_next_steps(folder))
    return Exit.OK


def project_files(template: str) -> dict[str, Path]:
    """What a template writes: relative path -> the file in the package."""
    found: dict[str, Path] = {}
    for folder in (PROJECTS / "shared", PROJECTS / template):
        for source in sorted(folder.rglob("*")):
            if source.is_file() and "__pycache__" not in source.parts:
                relative = source.relative_to(folder).as_posix()
                found[RENAMED.get(relative, relative)] = source
    return found


def _refuse_clashes(folder: Path, files: dict[str, Path]) -> None:
    if folder.exists() and not folder.is_dir():
        raise CommandError(f"`{folder}` is a file, a folder was expected")
    clashes = [name for name in (*files, SCHEMA) if (folder / name).exists()]
    if clashes:
        names = ", ".join(f"`{name}`" for name in clashes)
        where = "the current folder" if folder == Path() else f"`{folder}`"
        raise CommandError(f"{where} already holds {names}", "choose an empty folder: `osmosis-run init my-project`")


def _write_schema(target: Path) -> None:
    from runner.config.schema import schemas, text

    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text(schemas()[target.name]), encoding="utf-8")
    console().say(f"  {target}")


def _project_name(folder: Path) -> str:
    """The folder's name in the letters that a run folder and a TOML string may hold."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in folder.resolve().name)
    return name.strip("-.") or "project"


def _next_steps(folder: Path) -> str:
    enter = "" if folder == Path() else f"  cd {folder}\n"
    return f"\nNext:\n{enter}  osmosis-run validate\n  osmosis-run test\n  osmosis-run eval\n  osmosis-run simulate"
