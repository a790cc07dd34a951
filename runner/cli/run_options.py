"""The options of `eval` and `plan` that stand for keys of the file, and the plans they lead to, one a matrix cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from runner.cli.exit import CommandError
from runner.cli.options import file_options, locate

if TYPE_CHECKING:
    from runner.batch.options import RunOptions
    from runner.build.plan import Plan
    from runner.config.layers import Override

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asked for."""

    dataset: Path | None
    workflow: Path
    profile: str | None
    overrides: tuple[str, ...]
    model: str | None
    attempts: int | None
    rows: str | None
    limit: int | None
    concurrency: int | None
    name: str | None
    output: Path | None
    fresh: bool
    retry_failed: bool

    def settings(self) -> list[Override]:
        """The options that stand for keys, laid over everything else."""
        from runner.config.layers import Override

        found: list[tuple[str, Any, str]] = [
            ("dataset.path", None if self.dataset is None else str(self.dataset.resolve()), f"{self.dataset}"),
            ("model.id", self.model, f"--model {self.model}"),
            ("eval.attempts", self.attempts, f"--attempts {self.attempts}"),
            ("dataset.rows", self.rows, f"--rows {self.rows}"),
            ("dataset.limit", self.limit, f"--limit {self.limit}"),
            ("eval.concurrency", self.concurrency, f"--concurrency {self.concurrency}"),
        ]
        return [Override.from_option(key, value, shown) for key, value, shown in found if value is not None]

    def plans(self) -> Iterator[tuple[str, Plan]]:
        """Each matrix cell's name and plan; one nameless plan without a matrix. Raises `ConfigError`."""
        from runner.build.plan import build
        from runner.config.layers import Override
        from runner.config.load import inspect_file, load
        from runner.config.matrix import cells

        file = locate(self.workflow)
        settings = [*map(Override.from_set, self.overrides), *self.settings()]
        first = load(file, settings, profile=self.profile)
        if self.model is not None and first.model is not None:
            refuse_a_name_for(first.model.effective_provider)
        found = cells(inspect_file(file, overrides=settings, profile=self.profile).tree) if first.matrix.axes else []
        if not found:
            yield "", build(first)
            return
        for cell in found:
            yield cell.name, build(load(file, settings, profile=self.profile, cell=cell))

    def options(self, cell: str, record: Path | None = None, log: Path | None = None) -> RunOptions:
        """The run's options, for one cell."""
        from runner.batch.options import RunOptions

        return RunOptions(
            name=self.name, output=self.output, cell=cell, fresh=self.fresh, retry_failed=self.retry_failed,
            record=record, log=log, command=command_line(),
        )  # fmt: skip


def refuse_a_name_for(provider: str) -> None:
    """`--model` names who is to be asked: where the file itself answers, the name would only be a label."""
    if provider in ("scripted", "replay"):
        raise CommandError(
            f'--model asks another model, but this file\'s answers are its own (`model.provider` is "{provider}")',
            "add `--set model.provider=openai` (or litellm) to ask the model that you name",
        )


def run_options(command: F) -> F:
    """Everything of `Asked`, as options."""
    options = [
        click.argument("dataset", required=False, type=click.Path(path_type=Path)),
        click.option("--model", metavar="ID", help="The policy: `--set model.id=ID`."),
        click.option("--attempts", type=click.IntRange(min=1), metavar="N", help="Rollouts of each row."),
        click.option("--rows", metavar="ROWS", help="Only these rows, from 0: 3,7,10-20."),
        click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only so many rows."),
        click.option("--concurrency", type=click.IntRange(min=1), metavar="N", help="Rollouts in flight."),
        click.option("--name", metavar="NAME", help="The run's name. Default: the workflow's."),
        click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="The folder of run folders."),
        click.option("--fresh", is_flag=True, help="Start over; the old run is moved aside, never deleted."),
        click.option("--retry-failed", is_flag=True, help="Play failed rollouts again, grade ungraded ones again."),
    ]
    made: Any = command
    for option in reversed(options):
        made = option(made)
    wrapped: F = file_options(made)
    return wrapped


def command_line() -> list[str]:
    """The command line for the manifest, with values that look like secrets left out."""
    import sys

    from runner.config.layers import looks_secret, split_key

    words = []
    for word in sys.argv[1:]:
        key, equals, _ = word.partition("=")
        path = split_key(key.removeprefix("--set").strip()) if equals else None
        words.append(f"{key}=…" if path and looks_secret(path) else word)
    return words
