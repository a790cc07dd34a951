"""`osmosis-run export`: training rows from the scored rollouts of a run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click

from runner.cli.console import console
from runner.cli.exit import Exit
from runner.cli.options import json_option

FORMATS = ("openai-sft", "trl-sft", "jsonl")


@click.command("export")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="The shape of a row.")
@click.option("-o", "--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write to FILE, replaced in one step. Default: stdout.")  # fmt: skip
@click.option("--min-reward", type=float, metavar="X", help="Only rollouts with at least this reward.")
@click.option("--best-per-row", is_flag=True, help="Only the best attempt of each row; the first of equals.")
@json_option
def command(
    run: Path, form: str, out: Path | None, min_reward: float | None, best_per_row: bool, as_json: bool
) -> Exit:
    """Write rows from RUN's scored rollouts as JSON lines; what is left out is counted on stderr.

    Exporting again gives the same bytes. With --json and --out, the counts are printed as JSON.
    """
    from runner.batch.export.formats import Count, Selection, export
    from runner.batch.past_run import PastRun

    shell, past, count = console(), PastRun.open(run), Count()
    selection = Selection(min_reward, best_per_row)
    rows = export(past.in_order(count.dropped), form, past.manifest.get("tools", []), selection, count)
    if out is None:
        for row in rows:
            shell.out(row)
    else:
        _write(out, rows)
    if as_json and out is not None:
        shell.print_json({"rows": count.written, "left_out": dict(count.dropped), "file": str(out)})
    shell.say(count.text())
    return Exit.OK


def _write(out: Path, rows: Iterable[str]) -> None:
    """Whole or not at all; a device or a pipe is written straight through, never replaced."""
    if out.exists() and not out.is_file():
        with out.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{row}\n" for row in rows)
        return
    beside = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{row}\n" for row in rows)
        beside.replace(out)
    finally:
        beside.unlink(missing_ok=True)
