"""`osmosis-run plan`: what `eval` would re-use, grade again and run, and which key at which line caused it."""

from __future__ import annotations

from typing import Any

import click

from runner.cli.console import console
from runner.cli.exit import Exit
from runner.cli.options import json_option
from runner.cli.run_options import Asked, run_options


@click.command("plan")
@run_options
@json_option
def command(as_json: bool, **asked: Any) -> Exit:
    """Say what `eval` with the same words would do. Nothing is run and nothing is written."""
    from runner.batch.past_run import shown
    from runner.batch.run import plan_run, run_folder

    shell, made = console(), []
    for cell, plan in Asked(**asked).plans():
        options = Asked(**asked).options(cell)
        run_plan, _ = plan_run(plan, options)
        folder = shown(run_folder(plan, options).path)
        made.append({"run": folder, **({"cell": cell} if cell else {}), **run_plan.to_json()})
        if not as_json:
            shell.out(f"{shell.data.bold(folder)}  {run_plan.text()}")
    if as_json:
        shell.print_json(made[0] if len(made) == 1 else {"cells": made})
    return Exit.OK
