"""`osmosis-run eval`: run a workflow on a dataset, or go on with a run, and summarise it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli.console import Console, console
from runner.cli.exit import Exit
from runner.cli.open_files import allow_open_files
from runner.cli.options import json_option
from runner.cli.run_options import Asked, run_options

if TYPE_CHECKING:
    from runner.batch.options import RunOptions, RunResult
    from runner.build.plan import Plan


@click.command("eval")
@run_options
@click.option("--record", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Record every model call, for `provider = \"replay\"`.")  # fmt: skip
@click.option("--log", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Write the events of each rollout to a file of its own in DIR.")  # fmt: skip
@json_option
def command(record: Path | None, log: Path | None, as_json: bool, **asked: Any) -> int:
    """Run the workflow on DATASET (default: the file's `[dataset] path`).

    The same command goes on where a run was stopped. Exit codes: 0 ok, 2 a gate failed, 3 incomplete or too many
    failed, 130 interrupted.
    """
    shell, results = console(), []
    for cell, plan in Asked(**asked).plans():
        options = Asked(**asked).options(cell, record, log)
        if warning := allow_open_files(plan.config.eval.concurrency):
            shell.warn(warning)
        results.append(_evaluate(plan, options, shell, as_json))
        if not as_json:
            _tell(results[-1], shell)
        if results[-1].interrupted:
            break
    if as_json:
        _print_json(results, shell)
    elif len(results) > 1:
        from runner.batch.matrix import matrix_table

        shell.out(f"\n{matrix_table(results, shell.data)}")
    return max((result.exit_code for result in results), key=_severity)


def _severity(code: int) -> int:
    return [Exit.OK, Exit.GATE, Exit.INCOMPLETE, Exit.INTERRUPTED].index(Exit(code))


def _evaluate(plan: Plan, options: RunOptions, shell: Console, as_json: bool) -> RunResult:
    from runner.batch.run import Control, evaluate
    from runner.cli.event_loop import run_async
    from runner.cli.interrupt import interruptible
    from runner.cli.progress import watcher

    view = watcher(shell, silent=as_json)

    async def main() -> RunResult:
        control = Control()
        with interruptible(control, view):
            return await evaluate(plan, options, view, control)

    return run_async(main())


def _tell(result: RunResult, shell: Console) -> None:
    from runner.batch.past_run import shown
    from runner.batch.text import summary_text

    shell.out(f"\n{summary_text(result.summary, shell.data, run=shown(result.folder))}")
    if result.interrupted or result.stopped:
        shell.say(f"\n{shell.talk.name('hint')}: the same command goes on where this one stopped")
    if result.too_many_failed:
        over = result.summary["over_max_failed"]
        shell.err(f"{over['share']:.1%} of the rollouts failed, more than `eval.max_failed` of {over['allowed']:.1%}")


def _print_json(results: list[RunResult], shell: Console) -> None:
    made = [{"run": str(result.folder), "cell": result.cell, "exit_code": result.exit_code, **result.summary}
            for result in results]  # fmt: skip
    if len(made) == 1 and not made[0]["cell"]:
        made[0].pop("cell")
        shell.print_json(made[0])
    else:
        shell.print_json({"cells": made})
