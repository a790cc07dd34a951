"""`osmosis-run regrade`: the recorded rollouts of a run under today's graders."""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli.console import console
from runner.cli.options import build_plan, file_options, json_option


@click.command("regrade")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--all", "everything", is_flag=True, help="Also what these very graders have graded already.")
@file_options
@json_option
def command(
    run: Path, everything: bool, workflow: Path, profile: str | None, overrides: tuple[str, ...], as_json: bool
) -> int:
    """Grade RUN again without asking the policy; only rubric graders call their model.

    New grades are added to the journal and supersede the old ones, which stay in it.
    """
    from runner.batch.past_run import PastRun, shown
    from runner.batch.regrade import regrade
    from runner.batch.text import summary_text
    from runner.cli.event_loop import run_async

    shell = console()
    path = PastRun.open(run).folder.path
    result, count = run_async(regrade(build_plan(workflow, profile, overrides), path, everything=everything))
    if as_json:
        counts = {"graded": count.graded, "changed": count.changed, "kept": count.kept, "rowless": count.rowless}
        shell.print_json({"run": str(path), "regrade": counts, **result.summary})
        return result.exit_code
    shell.say(count.text())
    shell.out(f"\n{summary_text(result.summary, shell.data, run=shown(path))}")
    return result.exit_code
