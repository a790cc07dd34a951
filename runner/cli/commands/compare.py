"""`osmosis-run compare`: two runs, row by row, with intervals."""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli.console import console
from runner.cli.exit import CommandError, Exit
from runner.cli.options import json_option


@click.command("compare")
@click.argument("a", metavar="A", type=click.Path(path_type=Path))
@click.argument("b", metavar="B", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Compare although graders or rows differ; the result says so.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the sign flips that give p.")
@json_option
def command(a: Path, b: Path, force: bool, seed: int, as_json: bool) -> Exit:
    """Compare run B with run A: differences paired by row, the rows that flipped, what changed in the file."""
    from runner.batch.compare import NotComparable, compare
    from runner.batch.compare_text import compare_text
    from runner.batch.conclude import side
    from runner.batch.past_run import PastRun

    shell = console()
    sides = [side(PastRun.open(path), str(path)) for path in (a, b)]
    try:
        found = compare(*sides, force=force, seed=seed)
    except NotComparable as error:
        raise CommandError(f"these runs cannot be compared: {error}", "`--force` compares them all the same") from None
    if as_json:
        shell.print_json(found.to_json())
    else:
        shell.out(compare_text(found, shell.data))
    return Exit.OK
