"""The options of `eval` and `plan` that stand for keys of the file, and the plans they lead to, one a matrix cell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import click

from runner.cli.exit import CommandError
from runner.cli.module import (
    BASELINE_KEY,
    Module,
    eval_functions,
    grader_names,
    mcp_option,
    model_settings,
    module_option,
    option_settings,
    refuse_both,
    row_settings,
)
from runner.cli.options import file_options, locate
from runner.records.quick import quick

if TYPE_CHECKING:
    from runner.batch.options import RunOptions
    from runner.build.plan import Plan
    from runner.config.layers import Override
    from runner.config.loaded import Loaded
    from runner.tools.tool import Ask

F = TypeVar("F", bound=Callable[..., Any])

Tape: TypeAlias = tuple[Literal["live", "record", "replay"], Path | None]
"""Whether tools are on a cassette, and on which; None for the usual one."""


_DEFAULTS = {
    "limits.turns": 10,
    "limits.time": "1h",
    "eval.attempts": 1,
    "eval.concurrency": 1,
    "eval.pass_threshold": 1.0,
}
"""What `-m` has where nobody says otherwise: one rollout after the other, as that command line had them."""

_KEYS = {
    "pass_threshold": ("eval.pass_threshold", "--pass-threshold"),
    "max_turns": ("limits.turns", "--max-turns"),
    "temperature": ("sampling.temperature", "--temperature"),
    "max_tokens": ("sampling.max_tokens", "--max-tokens"),
    "rows": ("dataset.rows", "--rows"),
    "limit": ("dataset.limit", "--limit"),
}
"""Options that are one key each."""


@quick
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
    name: str | None = None
    output: Path | None = None
    fresh: bool = False
    retry_failed: bool = False
    module: str | None = None
    mcp: Path | None = None
    data: Path | None = None
    eval_fns: tuple[str, ...] = ()
    pass_threshold: float | None = None
    max_turns: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    base_url: str | None = None
    api_key: str | None = None
    offset: int | None = None
    baseline: tuple[str | None, str | None, str | None] = (None, None, None)
    """Another model, its address and its key: `baseline_plan`."""

    @property
    def has_file(self) -> bool:
        """Whether a file says the rest."""
        return self.module is None and self.mcp is None

    def settings(self) -> list[Override]:
        """The options that stand for keys, laid over everything else."""
        words = (self.model, self.base_url, self.api_key)
        return [*self._rest(), *model_settings(words, guess=not self.has_file)]

    def _rest(self) -> list[Override]:
        """All but the model's."""
        from runner.config.layers import Override

        first = not self.has_file
        keys = {
            "attempts": ("eval.attempts", "--n" if first else "--attempts"),
            "concurrency": ("eval.concurrency", "--batch-size" if first else "--concurrency"),
            **_KEYS,
        }
        dataset = self._dataset()
        found = [] if dataset is None else [Override.from_option("dataset.path", str(dataset.resolve()), f"{dataset}")]
        asked = {name: getattr(self, name) for name in keys}
        if self.offset:
            asked["limit"] = None  # the rows behind the offset are counted out
        return [*found, *option_settings(asked, keys), *eval_functions(self.eval_fns)]

    def grader_paths(self) -> dict[str, str]:
        """By the name of its grader, each eval function as it was named."""
        return {name: text for text, name in grader_names(self.eval_fns).items()}

    def report(self, asked: Path | None) -> Path | None:
        """Where the report goes: with `-m`, `--output` may name its file, as it did there."""
        if self.has_file or self.output is None or self.output.suffix != ".json":
            return asked
        if asked is not None:
            raise CommandError(f"`-o {asked}` and `--output {self.output}` both name the report", "leave one out")
        return self.output

    def _dataset(self) -> Path | None:
        if self.dataset is not None and self.data is not None:
            raise CommandError(f"the dataset is named twice: `{self.dataset}` and `--dataset {self.data}`", "name one")
        return self.dataset or self.data

    def plans(self) -> Iterator[tuple[str, Plan]]:
        """Each matrix cell's name and plan; one nameless plan without a matrix. Raises `ConfigError`."""
        refuse_both(self.module, self.workflow, self.mcp)
        if self.offset and self.rows:
            raise CommandError("`--offset` and `--rows` both choose rows", "leave one out")
        if not self.has_file:
            yield "", self._of_module(self.settings())
            return
        yield from self._of_file(self.settings())

    def baseline_plan(self) -> Plan | None:
        """The same with the other model; None where none is named. Raises `ConfigError`."""
        model, base_url, api_key = self.baseline
        if model is None:
            if base_url is not None or api_key is not None:
                raise CommandError("a baseline's address or key says nothing by itself", "add `--baseline-model ID`")
            return None
        guess = not self.has_file
        other = model_settings(self.baseline, guess=guess, prefix="baseline-", variable=BASELINE_KEY)
        if not self.has_file:
            return self._of_module([*self._rest(), *other])
        (plan, *more) = [plan for _, plan in self._of_file([*self.settings(), *other])]
        if more:
            raise CommandError("a matrix has no one baseline", "compare its cells: `osmosis-run compare A B`")
        if plan.config.model is not None:
            refuse_a_name_for(plan.config.model.effective_provider, "--baseline-model")
        return plan

    def _of_module(self, settings: list[Override]) -> Plan:
        from runner.build.plan import build

        module = self._module(settings)
        more = row_settings(module.load(), self.offset, self.limit)
        return build(module.load(*more))

    def _module(self, settings: list[Override]) -> Module:
        return Module(self.module, self.profile, self.overrides, _DEFAULTS, tuple(settings), self.mcp)

    def inspect(self) -> Loaded:
        """The config as it is, with all that is wrong with it."""
        from runner.cli.options import inspect

        refuse_both(self.module, self.workflow, self.mcp)
        if not self.has_file:
            return self._module(self.settings()).inspect()
        return inspect(locate(self.workflow), self.profile, self.overrides, self.settings())

    def _of_file(self, settings: list[Override]) -> Iterator[tuple[str, Plan]]:
        from runner.build.plan import build
        from runner.config.layers import Override
        from runner.config.load import inspect_file, load
        from runner.config.matrix import cells

        file = locate(self.workflow)
        settings = [*map(Override.from_set, self.overrides), *settings]
        if self.offset:
            settings += row_settings(load(file, settings, profile=self.profile), self.offset, self.limit)
        first = load(file, settings, profile=self.profile)
        if self.model is not None and first.model is not None:
            refuse_a_name_for(first.model.effective_provider)
        found = cells(inspect_file(file, overrides=settings, profile=self.profile).tree) if first.matrix.axes else []
        if not found:
            yield "", build(first)
            return
        for cell in found:
            yield cell.name, build(load(file, settings, profile=self.profile, cell=cell))

    def options(
        self,
        cell: str,
        record: Path | None = None,
        log: Path | None = None,
        tape: Tape = ("live", None),
        ask: Ask | None = None,
    ) -> RunOptions:
        """The run's options, for one cell."""
        from runner.batch.options import RunOptions

        return RunOptions(
            name=self.name, output=None if self.report(None) else self.output, cell=cell,
            fresh=self.fresh, retry_failed=self.retry_failed,
            record=record, log=log, tools=tape[0], cassette=tape[1], ask=ask, command=command_line(),
        )  # fmt: skip


def refuse_a_name_for(provider: str, flag: str = "--model") -> None:
    """`--model` names who is to be asked: where the file itself answers, the name would only be a label."""
    if provider in ("scripted", "replay", "python"):
        raise CommandError(
            f'{flag} asks another model, but this file\'s answers are its own (`model.provider` is "{provider}")',
            "add `--set model.provider=openai` (or litellm) to ask the model that you name",
        )


def run_options(command: F) -> F:
    """Everything of `Asked`, as options."""
    options = [
        click.argument("dataset", required=False, type=click.Path(path_type=Path)),
        *_flags(),
        click.option("--name", metavar="NAME", help="The run's name. Default: the workflow's."),
        click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="The folder of run folders."),
        click.option("--fresh", is_flag=True, help="Start over; the old run is moved aside, never deleted."),
        click.option("--retry-failed", is_flag=True, help="Play failed rollouts again, grade ungraded ones again."),
    ]
    wrapped: F = file_options(_with(command, options))
    return wrapped


def flag_options(command: F) -> F:
    """The options that stand for keys, for a command that only looks at the config."""
    made: F = _with(command, _flags())
    return made


def _with(command: Any, options: list[Any]) -> Any:
    for option in reversed(options):
        command = option(command)
    return command


def _flags() -> list[Any]:
    return [
        module_option,
        mcp_option,
        click.option(
            "-d", "--dataset", "data", type=click.Path(path_type=Path), metavar="FILE", help="The same as DATASET."
        ),
        click.option("--model", metavar="ID", help="The policy: `--set model.id=ID`."),
        click.option("--base-url", metavar="URL", help="Its endpoint, which speaks OpenAI's protocol."),
        click.option(
            "--api-key", metavar="KEY", help="Its key. Others on this machine may see it; a variable is safer."
        ),
        click.option(
            "--eval-fn",
            "eval_fns",
            multiple=True,
            metavar="MODULE:FN",
            help="A function that scores rollouts: one more grader. Repeatable.",
        ),
        click.option(
            "--attempts", "--n", "attempts", type=click.IntRange(min=1), metavar="N", help="Rollouts of each row."
        ),
        click.option("--pass-threshold", type=float, metavar="X", help="The reward from which a rollout has passed."),
        click.option("--max-turns", type=click.IntRange(min=1), metavar="N", help="Model calls of one rollout."),
        click.option("--temperature", type=float, metavar="X", help="`--set sampling.temperature=X`."),
        click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Tokens of one answer."),
        click.option("--rows", metavar="ROWS", help="Only these rows, from 0: 3,7,10-20."),
        click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only so many rows."),
        click.option("--offset", type=click.IntRange(min=0), metavar="N", help="Leave out the first N rows."),
        click.option(
            "--concurrency",
            "--batch-size",
            "concurrency",
            type=click.IntRange(min=1),
            metavar="N",
            help="Rollouts in flight.",
        ),
    ]


def command_line() -> list[str]:
    """The command line for the manifest, with values that look like secrets left out."""
    import sys

    from runner.config.layers import looks_secret, split_key

    words: list[str] = []
    for word in sys.argv[1:]:
        key, equals, _ = word.partition("=")
        if words and words[-1].endswith("api-key"):
            words.append("…")
            continue
        path = split_key(key.removeprefix("--set").strip()) if equals else None
        secret = key.endswith("api-key") or (path is not None and looks_secret(path))
        words.append(f"{key}=…" if equals and secret else word)
    return words
