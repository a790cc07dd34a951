"""`osmosis-run import`: a TOML file of the Osmosis SDK as a workflow.toml.

The text is data; what has no counterpart is told as notes on stderr, and stands as comments in the text, too.
"""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli.console import console
from runner.cli.exit import CommandError, Exit

KINDS = ("eval", "training", "eval-0.2", "serve")


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write to FILE, such as workflow.toml; paths are relative to it. Default: stdout, for this "
              "folder.")  # fmt: skip
@click.option("--kind", type=click.Choice(KINDS), help="What FILE is, where its tables do not tell.")
@click.option("--dataset", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="The dataset's file, where the SDK's file names one of the platform.")  # fmt: skip
@click.option("--workflow", metavar="NAME", help="The `AgentWorkflow`, where the entrypoint holds several.")
@click.option("--grader", metavar="NAME", help="The `Grader`, where the entrypoint holds several.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def command(
    file: Path,
    out: Path | None,
    kind: str | None,
    dataset: Path | None,
    workflow: str | None,
    grader: str | None,
    force: bool,
) -> Exit:
    """Turn FILE, an eval, training or serve file of the Osmosis SDK, into a workflow.toml.

    The entrypoint is imported to find its classes. Each key without a counterpart gets a note that says what to do.
    """
    from runner.osmosis_files.from_osmosis import Wish, import_file

    if out is not None and out.exists() and not force:
        raise CommandError(f"`{out}` is there already", "choose another with `-o FILE`, or say `--force`")
    if dataset is not None and not dataset.is_file():
        raise CommandError(f"there is no dataset `{dataset}`")
    imported = import_file(file, Path() if out is None else out.parent, Wish(kind, dataset, workflow, grader))
    shell = console()
    if out is None:
        shell.out(imported.text, end="")
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(imported.text, encoding="utf-8", newline="\n")
    for note in imported.notes:
        shell.say(f"{note.place}: {shell.talk.name('note')}: {note.text}" if note.place else _plain(note.text))
    if out is not None:
        shell.say(f"wrote {out}\n\nNext:\n  osmosis-run validate {out}")
    return Exit.OK


def _plain(text: str) -> str:
    return f"{console().talk.name('note')}: {text}"
