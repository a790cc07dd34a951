"""`osmosis-run show`: a run's summary, a row's attempts, or the transcript of one rollout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli.console import Console, console
from runner.cli.exit import CommandError, Exit
from runner.cli.options import json_option

if TYPE_CHECKING:
    from runner.batch.past_run import PastRun


@click.command("show")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("row", required=False, metavar="[ROW[/ATTEMPT]]")
@click.option("--list", "as_list", is_flag=True, help="One line a rollout, in the order of the dataset.")
@click.option("--failing", is_flag=True, help="With --list: only what is not scored or did not pass.")
@json_option
def command(run: Path, row: str | None, as_list: bool, failing: bool, as_json: bool) -> Exit:
    """Print RUN's summary, or the transcript of one of its rollouts. ROW is a row's id, or its index.

    RUN may also be a trajectory that was saved from Python, or a folder of those.
    """
    from runner.agentic.saving import holds_saved
    from runner.batch.past_run import PastRun

    shell = console()
    if holds_saved(run):
        _show_saved(run, row, failing, shell, as_json)
        return Exit.OK
    past = PastRun.open(run)
    if row is not None:
        _show_row(past, row, shell, as_json)
    elif as_list or failing:
        _show_list(past, failing, shell, as_json)
    else:
        _show_summary(past, shell, as_json)
    return Exit.OK


def _show_saved(path: Path, name: str | None, failing: bool, shell: Console, as_json: bool) -> None:
    """A saved trajectory; of a folder, the one called `name`, or a line for each."""
    from runner.agentic.client import TrajectoryClient
    from runner.agentic.shown import trajectories_text, trajectory_text

    try:
        found = TrajectoryClient(path)
    except (ValueError, OSError) as error:
        raise CommandError(str(error), "the file was damaged, or another version wrote it") from None
    one = found.trajectories[0] if path.is_file() else None if name is None else found.get(name)
    if name is not None and (one is None or one.request_id != name):
        raise CommandError(f"{path} has no trajectory `{name}`", f"`osmosis-run show {path}` lists what there is")
    if as_json:
        shell.print_json({"path": str(path), **found.summary()} if one is None else one.to_dict())
    else:
        listed = found.filter(is_completed=False) if failing else found
        shell.out(trajectories_text(listed, shell.data) if one is None else trajectory_text(one, shell.data))


def _show_summary(past: PastRun, shell: Console, as_json: bool) -> None:
    from runner.batch.past_run import shown
    from runner.batch.text import summary_text

    summary = past.folder.summary()
    if summary is None or past.is_newer_than_summary():
        summary = past.summary("the run has not ended, or was killed")
    if as_json:
        shell.print_json({"run": str(past.folder.path), **summary})
    else:
        shell.out(summary_text(summary, shell.data, run=shown(past.folder.path)))


def _show_row(past: PastRun, row: str, shell: Console, as_json: bool) -> None:
    from runner.batch.transcript import transcript

    records = _find(past, row)
    if not records:
        raise CommandError(
            f"{past.folder.path} has no rollout `{row}`",
            f"`osmosis-run show {past.folder.path} --list` lists what there is",
        )
    if as_json:
        shell.print_json(dict(records[0]) if len(records) == 1 else [dict(record) for record in records])
        return
    rule = "\n\n" + "=" * 80 + "\n\n"
    shell.out(rule.join(transcript(record, shell.data) for record in records))


def _find(past: PastRun, row: str) -> list[Any]:
    """ROW/ATTEMPT, or ROW alone: a row's id may hold a slash itself, so the whole word is tried first."""
    whole = past.find(row)
    name, slash, attempt = row.rpartition("/")
    if whole or not slash or not attempt.isdigit():
        return whole
    return past.find(name, int(attempt))


def _show_list(past: PastRun, failing: bool, shell: Console, as_json: bool) -> None:
    from runner.batch.listing import listed, listing_line

    threshold = float(past.manifest.get("pass_threshold", 1.0))
    for record in past.in_order():
        passed = record["reward"] is not None and record["reward"] >= threshold
        if failing and passed:
            continue
        if as_json:
            shell.print_json(listed(record, passed), indent=None)
        else:
            shell.out(listing_line(record, passed, shell.data))
