"""`osmosis-run eval`: run a workflow on a dataset, or go on with a run, and summarise it."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from runner.cli.baseline import baseline_options, compared, one_of, write_report
from runner.cli.console import Console, console
from runner.cli.debug_log import logging_all
from runner.cli.exit import CommandError, Exit
from runner.cli.open_files import allow_open_files
from runner.cli.options import json_option
from runner.cli.run_options import Asked, run_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from runner.batch.compare import Comparison
    from runner.batch.options import RunOptions, RunResult
    from runner.build.plan import Plan
    from runner.tools.tool import Ask


@click.command("eval")
@run_options
@click.option("-o", "report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write a report of one run, as JSON in the first generation's form.")  # fmt: skip
@click.option("--baseline-model", metavar="ID", help="Run once more with this model, and compare.")
@click.option("--baseline-base-url", metavar="URL", help="Its endpoint.")
@click.option("--baseline-api-key", metavar="KEY", help="Its key.")
@click.option("--record", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Record every model call, for `provider = \"replay\"`.")  # fmt: skip
@click.option("--log", type=click.Path(path_type=Path, file_okay=False), metavar="DIR",
              help="Write the events of each rollout to a file of its own in DIR.")  # fmt: skip
@click.option("--tools", "mode", type=click.Choice(["live", "record", "replay"]), default="live", show_default=True,
              help="Call the tools; or call them and record what they answer; or give what was recorded.")  # fmt: skip
@click.option("--cassette", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="What it records to and replays from. Default: cassettes/NAME.jsonl by the file.")  # fmt: skip
@click.option(
    "--ask", is_flag=True, help="Ask at the terminal about calls that `approve` wants somebody's consent for."
)
@click.option("--debug", is_flag=True, help="Log on stderr what your code and the libraries log, at every level.")
@json_option
def command(
    record: Path | None,
    log: Path | None,
    mode: Literal["live", "record", "replay"],
    cassette: Path | None,
    ask: bool,
    report: Path | None,
    debug: bool,
    as_json: bool,
    baseline_model: str | None,
    baseline_base_url: str | None,
    baseline_api_key: str | None,
    **asked: Any,
) -> int:
    """Run the workflow on DATASET (default: the file's `[dataset] path`).

    The same command goes on where a run was stopped. With `-m MODULE:NAME` no file is needed. Exit codes: 0 ok, 2 a
    gate failed, 3 incomplete or too many failed, 130 interrupted.
    """
    words = Asked(**asked, baseline=(baseline_model, baseline_base_url, baseline_api_key))
    report = words.report(report)
    with logging_all(debug):
        options = partial(words.options, record=record, log=log, tape=(mode, cassette), ask=asking(ask))
        return _command(words, report, options, as_json)


def asking(wanted: bool) -> Ask | None:
    """Who consents to tool calls: the person at the terminal, if that is wanted. Raises `CommandError` without one."""
    if not wanted:
        return None
    if not sys.stdin.isatty():
        raise CommandError("`--ask` asks at the terminal, and standard input is none", "leave it out: calls are denied")
    from runner.cli.consent import Consent

    return Consent(console())


def _command(words: Asked, report: Path | None, options: Callable[[str], RunOptions], as_json: bool) -> int:
    shell, results = console(), []
    baseline, plans = words.baseline_plan(), []
    for cell, plan in words.plans():
        plans.append(plan)
        results.append(_played(plan, options(cell), shell, as_json))
        if results[-1].interrupted:
            break
    codes = [result.exit_code for result in results]
    beside = None
    if baseline is not None and Exit.INTERRUPTED not in codes:
        other = baseline_options(words.options(""), plans[0])
        beside = _played(baseline, other, shell, as_json)
        codes.append(beside.exit_code)
    if report is not None:
        first = one_of(results, report)
        pair = None if beside is None or baseline is None else (baseline, beside)
        write_report(report, plans[0], words.grader_paths(), first, pair)
        shell.say(f"report: {report}")
    _conclude(results, beside, shell, as_json)
    return max(codes, key=_severity)


def _played(plan: Plan, options: RunOptions, shell: Console, as_json: bool) -> RunResult:
    if warning := allow_open_files(plan.config.eval.concurrency):
        shell.warn(warning)
    result = _evaluate(plan, options, shell, as_json)
    if not as_json:
        _tell(result, shell)
    return result


def _conclude(results: list[RunResult], baseline: RunResult | None, shell: Console, as_json: bool) -> None:
    """What stands under the runs: their JSON, their table, or what differs from the baseline."""
    found = None if baseline is None else compared(results[0], baseline)
    if as_json:
        _print_json(results, shell, baseline, found)
    elif found is not None:
        from runner.batch.compare_text import compare_text

        shell.out(f"\n{compare_text(found, shell.data)}")
    elif len(results) > 1:
        from runner.batch.matrix import matrix_table

        shell.out(f"\n{matrix_table(results, shell.data)}")


def _severity(code: int) -> int:
    return [Exit.OK, Exit.GATE, Exit.INCOMPLETE, Exit.INTERRUPTED].index(Exit(code))


def _evaluate(plan: Plan, options: RunOptions, shell: Console, as_json: bool) -> RunResult:
    from runner.batch.run import Control, evaluate
    from runner.cli.event_loop import run_async
    from runner.cli.interrupt import interruptible
    from runner.cli.progress import watcher

    view = watcher(shell, silent=as_json or options.ask is not None)

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


def _print_json(results: list[RunResult], shell: Console, baseline: RunResult | None, found: Comparison | None) -> None:
    made = [_json(result) for result in results]
    if baseline is not None and found is not None:
        shell.print_json({**made[0], "baseline_run": _json(baseline), "comparison": found.to_json()})
    elif len(made) == 1 and not results[0].cell:
        shell.print_json(made[0])
    else:
        shell.print_json({"cells": made})


def _json(result: RunResult) -> dict[str, Any]:
    cell = {"cell": result.cell} if result.cell else {}
    return {"run": str(result.folder), **cell, "exit_code": result.exit_code, **result.summary}
