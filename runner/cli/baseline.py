"""`eval --baseline-model`: the same run with another model, and what differs between the two."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.cli.exit import CommandError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runner.batch.compare import Comparison
    from runner.batch.options import RunOptions, RunResult
    from runner.build.plan import Plan


def baseline_options(options: RunOptions, plan: Plan) -> RunOptions:
    """The options of the baseline's run, which lies beside the first one's."""
    return replace(options, name=f"{options.name or plan.name}-baseline", record=None, log=None)


def compared(first: RunResult, baseline: RunResult) -> Comparison:
    """The first run against its baseline."""
    from runner.batch.compare import compare
    from runner.batch.conclude import side
    from runner.batch.past_run import PastRun, shown

    sides = [side(PastRun.open(result.folder), shown(result.folder)) for result in (baseline, first)]
    return compare(*sides, force=True)


def write_report(
    file: Path, plan: Plan, paths: Mapping[str, str], result: RunResult, baseline: tuple[Plan, RunResult] | None
) -> None:
    """Write what the first generation's `eval -o FILE` wrote. Raises `CommandError` for a file that cannot be."""
    from json import dumps

    from runner.batch.first_report import first_report
    from runner.batch.past_run import PastRun

    def model(of: Plan) -> str:
        return (of.config.model.id if of.config.model is not None else None) or ""

    names = tuple(model(each) for each in (plan, *([baseline[0]] if baseline else [])))
    config: dict[str, Any] = {
        "model": names[0],
        "n_runs": plan.config.eval.attempts,
        "pass_threshold": plan.config.eval.pass_threshold,
        "eval_fns": list(paths.values()),
        **({"baseline_model": names[1]} if baseline else {}),
    }
    report = first_report(
        PastRun.open(result.folder),
        config,
        paths,
        stopped=result.stopped,
        baseline=PastRun.open(baseline[1].folder) if baseline else None,
        models=(names[0], names[-1]),
    )
    write_json(file, dumps(report, indent=2, ensure_ascii=False))


def write_json(file: Path, text: str) -> None:
    """Write a report. Raises `CommandError`."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise CommandError(f"the report `{file}` cannot be written: {error.strerror}", "name another file") from error


def one_of(results: Sequence[RunResult], file: Path) -> RunResult:
    """The run that a report is of. Raises `CommandError` where a matrix made several."""
    if len(results) != 1:
        raise CommandError(f"`-o {file}` is the report of one run, and the matrix made {len(results)}", "use `--json`")
    return results[0]
