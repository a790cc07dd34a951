"""`import_file`: a file of the SDK to the text of a workflow.toml, nothing guessed and nothing dropped in silence."""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path

from runner.diag.diagnostic import ConfigError, Report
from runner.osmosis_files.code import GRADER, import_code
from runner.osmosis_files.imported import Importing, Note, seconds_text
from runner.osmosis_files.keys import AGENT_SECONDS, EVAL, EVAL_02, GRADER_SECONDS, SERVE, TURNS
from runner.osmosis_files.models import import_model, import_model_path
from runner.osmosis_files.page import Page
from runner.osmosis_files.reading import read_file
from runner.osmosis_files.rows import import_rows
from runner.osmosis_files.serving import import_serve
from runner.osmosis_files.workspace import find_workspace, relative

_TABLES = ("workflow", "model", "sampling", "limits", "graders", GRADER, "dataset", "eval", "serve", "serve.log",
           "profiles.baseline", "env", "secrets")  # fmt: skip
"""The order of the page."""

_COMMAND = {
    "fresh": "a matter of the command line: `osmosis-run eval --fresh`",
    "retry_failed": "a matter of the command line: `osmosis-run eval --retry-failed`",
    "quiet": "a matter of the command line: `osmosis-run eval --quiet`",
    "debug": "every rollout keeps its transcript: `osmosis-run show RUN ROW`",
    "log_samples": "every rollout is kept whole in the run's folder: `osmosis-run show RUN ROW`",
}
_TRAINER = {
    "lr": "the trainer's own",
    "total_epochs": "the trainer's own",
    "rollout_batch_size": "the trainer's own; what may play here at once is `[serve] max_concurrent`",
    "global_batch_size": "the trainer's own; what may play here at once is `[serve] max_concurrent`",
    "max_prompt_length": "the trainer's own: it cuts or refuses what is longer",
    "max_response_length": "the trainer's own; the longest answer of one model call is `[sampling] max_tokens`",
    "eval_interval": "the trainer's own",
    "checkpoint_save_freq": "the trainer's own",
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line says beyond the file: its kind, a dataset, which of several classes."""

    kind: str | None = None
    dataset: Path | None = None
    workflow: str | None = None
    grader: str | None = None


@dataclass(frozen=True, slots=True)
class Imported:
    """The text of a workflow.toml, what kind of file it was made from, and notes on what has no counterpart."""

    text: str
    kind: str
    notes: list[Note]


def import_file(
    path: Path, folder: Path, wish: Wish | None = None, environ: MutableMapping[str, str] | None = None
) -> Imported:
    """The file at `path` as a workflow.toml that is to lie in `folder`.

    Imports the rollout's entrypoint, with the variables of `[env]` set in `environ`. Raises `ConfigError` with every
    mistake of the file.
    """
    wish, report = wish or Wish(), Report()
    file = read_file(path, report, wish.kind)
    if file is None or report.errors:
        raise ConfigError(report)
    table = {EVAL_02.name: "eval", SERVE.name: "serve"}.get(file.kind.name, "experiment")
    workspace = find_workspace(file, table)
    if workspace is None:
        raise ConfigError(report)
    for name, value in file.table("env").items():
        (os.environ if environ is None else environ).setdefault(name, value)
    work = Importing(file, folder.resolve(), workspace, _page(file.path, folder.resolve()))
    import_code(work, table, workflow=wish.workflow, grader=wish.grader)
    if file.kind is SERVE:
        import_serve(work)
    else:
        import_rows(work, table, wish.dataset)
        _tables(work)
    if report.errors:
        raise ConfigError(report)
    _tidy(work.page)
    return Imported(work.page.text(), file.kind.name, work.in_order())


def _page(path: Path, folder: Path) -> Page:
    """A page whose first lines say what it is made from."""
    source = relative(path.resolve(), folder).removeprefix("./")
    page = Page([f"# Made from {source} by `osmosis-run import`.", "schema = 1"])
    for name in _TABLES:
        page.table(name)
    page.tail.comment("── keys without a counterpart ──")
    return page


def _tidy(page: Page) -> None:
    if len(page.tail.lines) == 1:
        page.tail.lines.clear()


def _tables(work: Importing) -> None:
    if work.file.kind is EVAL_02:
        import_model(work)
        _runs(work, "runs")
        _limits(work, "timeouts")
        _output(work)
        return
    import_model_path(work)
    if work.file.kind is EVAL:
        _runs(work, "evaluation")
        _limits(work, "evaluation")
    else:
        _training(work)
        _limits(work, "training")
    _experiment(work)
    _environment(work)


def _runs(work: Importing, table: str) -> None:
    said, ours = work.file.table(table), work.page.table("eval")
    ours.set("attempts", said.get("n", 1))
    comment = "" if "batch_size" in said else "the SDK's default; what your code allows may be far more"
    ours.set("concurrency", said.get("batch_size", 1), comment)
    ours.set("pass_threshold", float(said.get("pass_threshold", 1.0)))
    if said.get("n", 1) > 1:
        ours.comment("pass@k is in the summary of every run with more than one attempt.")


def _limits(work: Importing, table: str) -> None:
    said, ours = work.file.table(table), work.page.table("limits")
    ours.set("turns", TURNS, "the SDK has no such limit: lower it to what your agent needs")
    for key, name, default in (
        ("agent_workflow_timeout_s", "time", AGENT_SECONDS),
        ("grader_timeout_s", "grader_time", GRADER_SECONDS),
    ):
        ours.set(name, seconds_text(said.get(key, default)), "" if key in said else "the SDK's default")


def _output(work: Importing) -> None:
    for key in work.file.table("output"):
        if key != "output_path":
            work.note("eval", ("output", key), _COMMAND[key])
    for key in ("fresh", "retry_failed"):
        if key in work.file.table("eval"):
            work.note("eval", ("eval", key), _COMMAND[key])
    output = work.file.get("output", "output_path")
    if output is not None:
        folder = work.workspace.root / output
        said = output if Path(output).is_absolute() else relative(folder, work.folder).removeprefix("./")
        work.page.table("eval").set("output", said)


def _training(work: Importing) -> None:
    said, sampling = work.file.table("training"), work.page.table("sampling")
    if "n_samples_per_prompt" in said:
        comment = "rollouts of each row in an `eval`; in training the controller asks for each by itself"
        work.page.table("eval").set("attempts", said["n_samples_per_prompt"], comment)
    for table in ("training", "checkpoints"):
        for key in work.file.table(table):
            if key in _TRAINER:
                work.note(None, (table, key), _TRAINER[key])
    for key, value in work.file.table("sampling").items():
        if key == "rollout_top_p" and value == 0:
            work.note("sampling", ("sampling", key), "must be more than 0 here; a `temperature` of 0 says the same")
        else:
            sampling.set(key.removeprefix("rollout_"), float(value), "in training the controller may override it")


def _experiment(work: Importing) -> None:
    advice = {
        "branch": "the code that lies there is run: `git switch` to the branch first",
        "commit_sha": "the code that lies there is run: `git checkout` the commit first",
        "completion_webhook": "nobody is called when a run ends: call it from the script that runs `osmosis-run eval`",
    }
    for key, text in advice.items():
        if key in work.file.table("experiment"):
            work.note("workflow", ("experiment", key), text)
    for key in work.file.table("advanced"):
        work.note(None, ("advanced", key), "a parameter of the platform")


def _environment(work: Importing) -> None:
    ours = work.page.table("env")
    if work.file.table("env"):
        ours.comment("A variable that the process has already wins over this table.")
    for name, value in work.file.table("env").items():
        ours.set(name, value)
    if work.file.table("secrets"):
        work.page.table("secrets").set("required", list(work.file.get("secrets", "required")))


__all__ = ["Imported", "Wish", "import_file"]
