"""`osmosis-run validate`: every finding about one or more files, none hidden.

The findings are this command's data, so they go to stdout in every format; that a file is sound is talk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli.console import console
from runner.cli.exit import CommandError, Exit
from runner.cli.module import Module, module_option, refuse_both
from runner.cli.options import DEFAULT, inspect, locate, profile_option, set_option
from runner.records.quick import quick

if TYPE_CHECKING:
    from runner.build.check import Checked
    from runner.config.config import RolloutConfig
    from runner.config.load import Loaded
    from runner.diag.diagnostic import Report


@quick
class Wanted:
    """How to check a file."""

    profile: str | None
    overrides: tuple[str, ...]
    imports: bool
    dataset: Path | None
    module: str | None = None

    def check(self, file: Path) -> Finding:
        from runner.build.check import check_build
        from runner.config.layers import Override

        options = []
        if self.dataset is not None:
            shown = f"--dataset {self.dataset}"
            options = [Override.from_option("dataset.path", str(self.dataset.absolute()), shown)]
        if self.module is not None:
            module = Module(self.module, self.profile, self.overrides, settings=tuple(options))
            loaded = module.inspect(serving=True, named=self.imports)
        else:
            loaded = inspect(file, self.profile, self.overrides, options)
        return Finding(file, loaded, check_build(loaded, imports=self.imports, read_rows=bool(options)))


@quick
class Finding:
    """A file and all that is known of it."""

    file: Path
    loaded: Loaded
    checked: Checked

    @property
    def report(self) -> Report:
        return self.loaded.report


@click.command("validate")
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--dataset", type=click.Path(path_type=Path), help="Check this dataset's columns against the templates.")
@click.option("--no-import", is_flag=True, help="Import no user code: for files you do not trust.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "github", "sarif"]),
    default="text",
    show_default=True,
    help="json: one object a line. github: annotations. sarif: one SARIF 2.1.0 log.",
)
@click.option("--fix", is_flag=True, help="Make the repairs that are mechanical, then check again.")
@click.option(
    "--explain",
    metavar="[CODE]",
    is_flag=False,
    flag_value="",
    help="Say more about a code, or list the codes; check nothing.",
)
@module_option
@click.option("-v", "--verbose", is_flag=True, help="Say what it is made of: tools, servers, sandboxes, graders.")
@profile_option
@set_option
def command(
    files: tuple[Path, ...],
    dataset: Path | None,
    no_import: bool,
    form: str,
    fix: bool,
    explain: str | None,
    module: str | None,
    verbose: bool,
    profile: str | None,
    overrides: tuple[str, ...],
) -> Exit:
    """Find every mistake in FILEs (default: workflow.toml) that can be found without calling a model.

    A FILE may be a folder that holds a workflow.toml. With `-m MODULE:NAME` there is no file: the agent is checked.
    """
    if explain is not None:
        return _explain(explain)
    if dataset is not None and not dataset.exists():
        raise CommandError(f"there is no dataset `{dataset}`")
    if files:
        refuse_both(module, files[0])
    wanted = Wanted(profile, overrides, not no_import, dataset, module)
    found, missing = ([Path(module)], False) if module is not None else _locate_all(files or (DEFAULT,))
    findings = [_checked(file, wanted, fix) for file in found]
    _print(form, findings, verbose)
    sound = not missing and not any(one.report.errors for one in findings)
    return Exit.OK if sound else Exit.USAGE


def _locate_all(files: tuple[Path, ...]) -> tuple[list[Path], bool]:
    """The files that are there, each once; of the others it says so and goes on with the rest."""
    found: dict[Path, None] = {}
    missing = False
    for file in files:
        try:
            found[locate(file)] = None
        except CommandError as error:
            console().fail(error.message, error.hint)
            missing = True
    return list(found), missing


def _checked(file: Path, wanted: Wanted, fix: bool) -> Finding:
    found = wanted.check(file)
    # Repairs that touch one another are made one after the other; each round makes at least one.
    for _ in range(8):
        if not fix or not _repair(found.report):
            break
        found = wanted.check(file)
    return found


def _repair(report: Report) -> bool:
    from runner.diag.fix import apply_fixes

    texts = apply_fixes(report)
    for name, text in texts.items():
        Path(name).write_text(text, encoding="utf-8", newline="")
        console().say(f"repaired {name}")
    return bool(texts)


def _print(form: str, findings: list[Finding], verbose: bool) -> None:
    if form == "text":
        for found in findings:
            _print_text(found, verbose)
        return
    from runner import __version__
    from runner.diag.diagnostic import Report
    from runner.diag.formats import to_github, to_json_lines, to_sarif

    whole = Report()
    for found in findings:
        whole.extend(found.report)
    formats: dict[str, Callable[[Report], str]] = {
        "json": to_json_lines,
        "github": to_github,
        "sarif": lambda report: to_sarif(report, __version__),
    }
    console().out(formats[form](whole), end="")


def _print_text(found: Finding, verbose: bool) -> None:
    speaker = console()
    if len(found.report):
        from runner.cli.failures import advice
        from runner.diag.render import render

        speaker.out(render(found.report, color=speaker.data.enabled), end="")
        speaker.say(f"\n{speaker.talk.name('hint')}: {advice(found.report)}")
    if not found.report.errors:
        checked = found.checked
        parts = [_count(checked.tools + len(checked.offered), "tool"), _count(checked.graders, "grader")]
        parts += [_count(checked.servers, "MCP server")] if checked.servers else []
        parts += [] if checked.rows is None else [_count(checked.rows, "row")]
        speaker.say(f"{found.file}: {speaker.talk.ok('ok')} ({', '.join(parts)})")
        for note in checked.notes:
            speaker.say(f"  {note}")
        if verbose and found.loaded.config is not None:
            for word, names in _parts(found.loaded.config, checked):
                speaker.say(f"  {word:<9} {', '.join(names) or 'none'}")


def _parts(config: RolloutConfig, checked: Checked) -> Iterator[tuple[str, list[str]]]:
    """What the file is made of, by kind, each with the word that says most of it."""
    from runner.config.builtins import BUILTINS

    ours = tuple(BUILTINS.values())
    yield (
        "tools",
        [
            *(f"{name} (built in)" if isinstance(tool, ours) else name for name, tool in config.tools.items()),
            *checked.offered,
        ],
    )
    if config.mcp:
        yield (
            "servers",
            [f"{name} ({server.url or (server.command or ('',))[0]})" for name, server in config.mcp.items()],
        )
    if config.sandboxes:
        yield "sandboxes", [f"{name} ({section.kind})" for name, section in config.sandboxes.items()]
    yield "graders", [f"{name} ({section.kind})" for name, section in config.graders.items()]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _explain(code: str) -> Exit:
    from runner.diag.codes import CODES, explain_code

    if not code:
        width = max(map(len, CODES))
        for entry in CODES.values():
            console().out(f"{entry.name:<{width}}  {entry.title}")
        return Exit.OK
    try:
        console().out(explain_code(code), end="")
    except KeyError as error:
        raise CommandError(error.args[0], "`osmosis-run validate --explain` lists all of them") from None
    return Exit.OK
