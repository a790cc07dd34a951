"""`osmosis-run export-osmosis`: a workflow as a TOML file that the Osmosis SDK reads."""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli.commands.import_ import KINDS
from runner.cli.console import console
from runner.cli.exit import CommandError, Exit
from runner.cli.options import file_argument, inspect, locate, profile_option, set_option


@click.command("export-osmosis")
@file_argument
@click.option("--kind", type=click.Choice(KINDS), required=True, help="Which of the SDK's files to write.")
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write to FILE, such as configs/eval/NAME.toml. Default: stdout.")  # fmt: skip
@click.option("--force", is_flag=True, help="Write over a file that is there.")
@profile_option
@set_option
def command(
    workflow: Path, kind: str, out: Path | None, force: bool, profile: str | None, overrides: tuple[str, ...]
) -> Exit:
    """Write FILE (default: workflow.toml) as an eval, training or serve file of the Osmosis SDK.

    Keys that their file cannot say are told as notes on stderr, and as comments at its end.
    """
    from runner.diag.diagnostic import ConfigError
    from runner.osmosis_files.to_osmosis import export_file

    if out is not None and out.exists() and not force:
        raise CommandError(f"`{out}` is there already", "choose another with `-o FILE`, or say `--force`")
    loaded = inspect(locate(workflow), profile, overrides)
    # A secret that is not set, or a dataset that lies elsewhere, is no obstacle to writing a file down.
    if loaded.config is None or any(
        one.severity == "error" and one.code not in ("secret-missing", "dataset-missing") for one in loaded.report
    ):
        raise ConfigError(loaded.report)
    exported = export_file(loaded.config, kind)
    shell = console()
    if out is None:
        shell.out(exported.text, end="")
    else:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(exported.text, encoding="utf-8", newline="\n")
    for note in exported.notes:
        where = f"{note.place}: " if note.place else ""
        shell.say(f"{where}{shell.talk.name('note')}: {note.text}")
    if out is not None:
        shell.say(f"wrote {out}")
    return Exit.OK
