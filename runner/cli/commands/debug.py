"""`osmosis-run debug`: step through one rollout at the terminal, whatever kind of agent plays it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli.console import console
from runner.cli.exit import CommandError, Exit
from runner.cli.options import build_plan, file_argument, profile_option, set_option
from runner.cli.run_options import refuse_a_name_for

if TYPE_CHECKING:
    from runner.build.plan import Plan
    from runner.config.layers import Override


@click.command("debug")
@file_argument
@click.option("--row", default="", metavar="ROW", help="The row to begin with: its place from 0, or its id.")
@click.option("--attempt", type=click.IntRange(min=0), default=0, show_default=True, help="Which attempt, from 0.")
@click.option("--dataset", type=click.Path(path_type=Path), metavar="FILE", help="The dataset. Default: the file's.")
@click.option("--rows", metavar="ROWS", help="Walk only these rows, from 0: 3,7,10-20.")
@click.option("--model", metavar="ID", help="The policy: `--set model.id=ID`.")
@profile_option
@set_option
@click.option("--json", "as_json", is_flag=True, help="Print each rollout's outcome on stdout, a line of JSON each.")
def command(
    workflow: Path,
    row: str,
    attempt: int,
    dataset: Path | None,
    rows: str | None,
    model: str | None,
    profile: str | None,
    overrides: tuple[str, ...],
    as_json: bool,
) -> Exit:
    """Step through a rollout of FILE (default: workflow.toml): see each request, edit it, ask again, choose.

    Commands are read a line each, from a terminal or from a pipe; `?` lists them. While you think, the rollout's clock
    stands still. Nothing is journalled. Exit codes: 0 ok, 1 usage or configuration, 130 interrupted.
    """
    plan = build_plan(workflow, profile, overrides, _settings(dataset, rows, model))
    if model is not None and plan.config.model is not None:
        refuse_a_name_for(plan.config.model.effective_provider)
    if plan.dataset is None:
        raise CommandError("the file names no dataset", "name one: `osmosis-run debug --dataset FILE`")
    walk(plan, row, attempt, as_json=as_json)
    return Exit.OK


def _settings(dataset: Path | None, rows: str | None, model: str | None) -> list[Override]:
    from runner.config.layers import Override

    found = [
        ("dataset.path", None if dataset is None else str(dataset.resolve()), f"{dataset}"),
        ("dataset.rows", rows, f"--rows {rows}"),
        ("model.id", model, f"--model {model}"),
    ]
    return [Override.from_option(key, value, shown) for key, value, shown in found if value is not None]


def walk(plan: Plan, row: str, attempt: int, *, as_json: bool) -> None:
    """Step through rollouts of `plan`, from `row` on. Raises `CommandError` for a row that is not there."""
    from runner.cli.debug.clock import PausingClock, PausingLoop
    from runner.cli.debug.session import NoSuchRow, Session, find_row
    from runner.cli.event_loop import run_async

    clock, shell = PausingClock(), console()

    async def main() -> None:
        async with plan.open() as live:
            for notice in live.notices:
                shell.warn(notice)
            try:
                first = find_row(live, row)
            except NoSuchRow as error:
                raise CommandError(str(error), "rows are named by their id, or by their place from 0") from None
            await Session(live, shell, clock, as_json).run(first, attempt)

    run_async(main(), lambda: PausingLoop(clock))
