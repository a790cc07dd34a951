"""`export_file`: a workflow as a file that the SDK reads, with a note for each key that it cannot say."""

from __future__ import annotations

import os
import re
from collections.abc import MutableMapping
from dataclasses import dataclass
from pathlib import Path

from runner.config.config import RolloutConfig
from runner.config.graders import PythonGrader
from runner.diag.diagnostic import ConfigError
from runner.osmosis_files.exporting import Code, Exporting, find_classes, find_code
from runner.osmosis_files.imported import Note
from runner.osmosis_files.keys import ENV_NAME, EVAL, EVAL_02, KINDS, RESERVED, SECRET_NAME, SERVE, TRAINING
from runner.osmosis_files.page import Page


@dataclass(frozen=True, slots=True)
class Exported:
    """The text of a file of the SDK, and notes on what it leaves out."""

    text: str
    notes: list[Note]


def export_file(config: RolloutConfig, kind: str, environ: MutableMapping[str, str] | None = None) -> Exported:
    """`config`, loaded from a file, as a file of `kind`, a name of `KINDS`.

    Imports the agent's file, with the variables of `[env]` set in `environ`. Raises `ConfigError`.
    """
    work = Exporting(config, KINDS[kind], _page(config))
    code = find_code(work)
    classes = None if code is None else find_classes(work, code, os.environ if environ is None else environ)
    if code is None or classes is None:
        raise ConfigError(work.report)
    _graders(work, code, classes.grader is not None)
    if work.kind is SERVE:
        _serve(work, code)
    elif work.kind is EVAL_02:
        _eval_02(work, code)
    else:
        _submitted(work, code)
    if work.report.errors:
        raise ConfigError(work.report)
    work.left_out()
    if len(work.page.tail.lines) == 1:
        work.page.tail.lines.clear()
    return Exported(work.page.text(), work.notes)


def _page(config: RolloutConfig) -> Page:
    name = config.file.name if config.file is not None else "a workflow"
    page = Page([f"# Made from {name} by `osmosis-run export-osmosis`."])
    page.tail.comment("── not in this file ──")
    return page


def _graders(work: Exporting, code: Code, is_found: bool) -> None:
    """The SDK finds one grader in the entrypoint; every other way to score is ours."""
    own = [name for name, one in work.config.graders.items() if isinstance(one, PythonGrader)]
    for name, grader in work.config.graders.items():
        path = ("graders", name)
        if not isinstance(grader, PythonGrader):
            work.note(path, f"a `{grader.kind}` grader is ours: write it as the `Grader` class of the entrypoint")
        elif len(own) > 1:
            work.note(path, "the SDK runs one `Grader`: make one of all, and import it into the entrypoint")
        elif not is_found:
            work.note(path, f"import `{grader.call.name}` into `{code.entrypoint}`: the SDK looks for it there")
        else:
            work.said.update({(*path, "kind"), (*path, "call")})


def _submitted(work: Exporting, code: Code) -> None:
    """`[experiment]` and what goes with it: evaluation and training files."""
    work.set("experiment", "rollout", code.rollout)
    work.set("experiment", "entrypoint", code.entrypoint)
    name = _model_name(work)
    if name is not None:
        work.set("experiment", "model_path", name, ("model", "id"))
    _platform_dataset(work)
    if work.kind is EVAL:
        first, limit = _span(work)
        if limit is not None and not first:
            work.set("evaluation", "limit", limit, ("dataset", "limit"), ("dataset", "rows"))
        _counts(work, "evaluation")
        _timeouts(work, "evaluation")
    else:
        _training(work)
    _environment(work)


def _model_name(work: Exporting) -> str | None:
    """`[model] id`, or None with a finding: a script or a recording is no model to anybody else."""
    model, cure = work.config.model, "add it, or say `--set model.id=NAME`"
    if model is not None and model.effective_provider in ("scripted", "replay"):
        message = f"the model is `{model.effective_provider}`, which the SDK has not"
        work.refuse("bad-value", ("model", "provider"), message, "name a model: `--set model.provider=litellm`")
        return None
    if model is None or model.id is None:
        message = f"{work.kind.name} files name the model, and this workflow has no `[model] id`"
        work.refuse("missing-key", ("model",), message, cure)
        return None
    return model.id


def _span(work: Exporting) -> tuple[int, int | None]:
    """The first row and how many, where the rows are one range; (0, None) is all of them, or no range."""
    dataset = work.config.dataset
    whole = re.fullmatch(r"\s*(\d+)(?:-(\d+))?\s*", dataset.rows or "")
    if whole is None:
        return 0, dataset.limit if dataset.rows is None else None
    first, last = int(whole[1]), int(whole[2] or whole[1])
    return first, min(dataset.limit or last - first + 1, last - first + 1)


def _platform_dataset(work: Exporting) -> None:
    path = work.config.dataset.path
    if path is None:
        message = f"{work.kind.name} files name a dataset, and this workflow has no `[dataset] path`"
        work.refuse("missing-key", ("dataset",), message, "add it, or say `--set dataset.path=NAME`")
        return
    name = Path(path.text).stem
    comment = f"upload it under this name: `osmosis dataset upload {path.text}`"
    work.set("experiment", "dataset", name, ("dataset", "path"), comment=comment)


def _counts(work: Exporting, table: str) -> None:
    section = work.config.eval
    work.set(table, "n", section.attempts, ("eval", "attempts"))
    work.set(table, "batch_size", section.concurrency, ("eval", "concurrency"))
    threshold = section.pass_threshold
    if 0 <= threshold <= 1:
        work.set(table, "pass_threshold", threshold, ("eval", "pass_threshold"))
    else:
        work.note(("eval", "pass_threshold"), f"{threshold:g} lies outside of 0 to 1, so theirs is the default, 1")


def _timeouts(work: Exporting, table: str) -> None:
    limits, range_ = work.config.limits, (1, 86_400) if work.kind is TRAINING else (0, float("inf"))
    for key, name, seconds in (
        ("agent_workflow_timeout_s", "time", limits.time),
        ("grader_timeout_s", "grader_time", limits.grader_time),
    ):
        if range_[0] <= seconds <= range_[1]:
            value = int(seconds) if seconds == int(seconds) else seconds
            work.set(table, key, value, ("limits", name))
        else:
            work.note(("limits", name), "training files take 1 second to a day, so theirs is the default")


def _training(work: Exporting) -> None:
    config, attempts = work.config, ("eval", "attempts")
    if config.origins.value_place(attempts) is not None:
        if config.eval.attempts <= 1024:
            work.set("training", "n_samples_per_prompt", config.eval.attempts, attempts)
        else:
            work.note(attempts, "training files take at most 1,024 samples for a prompt")
    _timeouts(work, "training")
    for key in ("temperature", "top_p"):
        value = getattr(config.sampling, key)
        if value is not None:
            work.set("sampling", f"rollout_{key}", value, ("sampling", key))


def _environment(work: Exporting) -> None:
    for name, value in work.config.env.items():
        path = ("env", name)
        if not re.fullmatch(ENV_NAME, name) or name.startswith(RESERVED):
            work.note(path, "the SDK takes names of capitals, digits and `_`, not beginning with `_OSMOSIS_`")
        else:
            work.set("env", name, value, path)
    names = list(work.config.secrets.required)
    model = work.config.model
    if model is not None and model.api_key is not None:
        names.append(model.api_key.env)
        work.said.add(("model", "api_key"))
    good = [name for name in dict.fromkeys(names) if re.fullmatch(SECRET_NAME, name) and name not in work.config.env]
    if len(good) < len(set(names)):
        bad = ", ".join(f"`{name}`" for name in dict.fromkeys(names) if name not in good)
        where = ("secrets", "required")
        work.note(where, f"{bad} cannot be secrets there: capitals, digits and `_`, not in `[env]`, a capital first")
    work.set("secrets", "required", good, ("secrets", "required"))


def _eval_02(work: Exporting, code: Code) -> None:
    _rows_02(work, code)
    _model_02(work)
    _counts(work, "runs")
    _timeouts(work, "timeouts")
    output = ("eval", "output")
    if work.config.origins.value_place(output) is not None:
        work.set("output", "output_path", _from_root(work.config.eval.output.path, code, work), output)


def _rows_02(work: Exporting, code: Code) -> None:
    dataset = work.config.dataset
    work.set("eval", "rollout", code.rollout)
    work.set("eval", "entrypoint", code.entrypoint)
    if dataset.path is None:
        message = "an eval file names its dataset, and this workflow has no `[dataset] path`"
        work.refuse("missing-key", ("dataset",), message, "add it, or say `--set dataset.path=FILE`")
        return
    work.set("eval", "dataset", _from_root(dataset.path.path, code, work), ("dataset", "path"))
    first, limit = _span(work)
    if first:
        work.set("eval", "offset", first)
    if limit is not None:
        work.set("eval", "limit", limit, ("dataset", "limit"), ("dataset", "rows"))
    for key, column in dataset.columns.items():
        if column.lower() == key:  # the SDK ignores case
            work.said.add(("dataset", "columns", key))


def _model_02(work: Exporting) -> None:
    model, name = work.config.model, _model_name(work)
    if model is None or name is None:
        return
    work.set("llm", "model", name, ("model", "id"))
    if model.base_url is not None:
        work.set("llm", "base_url", model.base_url, ("model", "base_url"))
    if model.api_key is not None:
        work.set("llm", "api_key_env", model.api_key.env, ("model", "api_key"))
    if model.provider in ("openai", "litellm"):
        work.said.add(("model", "provider"))


def _from_root(path: Path, code: Code, work: Exporting) -> str:
    """A path as the SDK reads it: from the workspace's root, which is the file's own folder where there is none."""
    root = (code.root or work.config.folder).resolve()
    return Path(os.path.relpath(path.resolve(), root)).as_posix()


def _serve(work: Exporting, code: Code) -> None:
    serve, log = work.config.serve, work.config.serve.log
    work.set("serve", "rollout", code.rollout)
    work.set("serve", "entrypoint", code.entrypoint)
    work.set("server", "host", serve.host, ("serve", "host"))
    if serve.port:
        work.set("server", "port", serve.port, ("serve", "port"))
    else:
        work.note(("serve", "port"), "theirs cannot be any free port, so it is the default, 9000")
    work.set("server", "log_level", log.level, ("serve", "log", "level"))
    work.said.add(("serve", "allow_anonymous"))
    if serve.api_key is not None:
        work.note(("serve", "api_key"), "the SDK's server asks for no key: let nobody else reach its port")
