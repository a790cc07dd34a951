"""`osmosis-run test`: the golden cases that the file declares for its tools, its graders and whole rollouts.

No policy is asked, so this costs nothing; only a rubric calls its judge.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli.console import Console, Style, console
from runner.cli.debug_log import logging_all
from runner.cli.exit import CommandError, Exit
from runner.cli.module import mcp_option, module_option, refuse_both
from runner.cli.options import file_argument, inspect, json_option, locate, profile_option, set_option

if TYPE_CHECKING:
    from runner.build.plan import Plan
    from runner.cli.golden import Tested

_ROWS = ("dataset", "model", "base_url", "api_key", "max_turns", "max_tokens", "temperature", "limit", "offset", "row",
         "interactive", "report")  # fmt: skip


@click.command("test")
@file_argument
@profile_option
@set_option
@click.option("--junit", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write the results as JUnit XML, for a CI.")  # fmt: skip
@json_option
@module_option
@click.option("--agent", "module", metavar="MODULE:NAME", help="The same as -m.")
@mcp_option
@click.option("-d", "--dataset", type=click.Path(path_type=Path), metavar="FILE", help="With -m: rows to play.")
@click.option("--model", metavar="ID", help="With -m: who answers. Default: gpt-5-mini.")
@click.option("--base-url", metavar="URL", help="With -m: its endpoint, which speaks OpenAI's protocol.")
@click.option("--api-key", metavar="KEY", help="With -m: its key; a variable is safer.")
@click.option(
    "--max-turns", type=click.IntRange(min=1), metavar="N", help="With -m: model calls of a row. Default: 10."
)
@click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="With -m: tokens of one answer.")
@click.option("--temperature", type=float, metavar="X", help="With -m: `--set sampling.temperature=X`.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="With -m: only so many rows.")
@click.option("--offset", type=click.IntRange(min=0), metavar="N", help="With -m: leave out the first N rows.")
@click.option("-o", "--output", "report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="With -m: write a JSON report.")  # fmt: skip
@click.option("-i", "--interactive", is_flag=True, help="With -m: step through a row, as `debug` does.")
@click.option("--row", type=click.IntRange(min=0), metavar="N", help="With -i: the row to begin with, from 0.")
@click.option("--debug", is_flag=True, help="Log on stderr what your code and the libraries log, at every level.")
def command(
    workflow: Path,
    profile: str | None,
    overrides: tuple[str, ...],
    junit: Path | None,
    as_json: bool,
    module: str | None,
    mcp: Path | None,
    debug: bool,
    **rows: Any,
) -> Exit:
    """Run the tests that FILE (default: workflow.toml) declares for its tools, its graders and whole rollouts.

    A test of a rollout (`[[tests]]`) plays it with a scripted model; no policy is asked. With `-m MODULE:NAME` there is
    no file: the agent plays rows of a dataset with a real model. Exit codes: 0 all passed, 1 some did not.
    """
    refuse_both(module, workflow, mcp)
    with logging_all(debug):
        if module is None and mcp is None:
            _refuse_rows(rows)
            return _of_file(workflow, profile, overrides, junit, as_json)
        from runner.cli.agent_test import AgentTest, run_agent_test

        if junit is not None or as_json:
            raise CommandError("`test -m` reports what was played in a form of its own", "`-o FILE` writes it as JSON")
        return run_agent_test(AgentTest(module, mcp, profile, overrides, **rows))


def _refuse_rows(rows: Mapping[str, Any]) -> None:
    """What plays rows needs `-m`: a file is played by other commands."""
    given = [name for name in _ROWS if rows[name] not in (None, False)]
    if given:
        flag = {"report": "-o"}.get(given[0], f"--{given[0].replace('_', '-')}")
        raise CommandError(
            f"`{flag}` is for `test -m MODULE:NAME`, which plays rows of a dataset",
            "a file is played by `osmosis-run eval`, and step by step by `osmosis-run debug`",
        )


def _of_file(
    workflow: Path, profile: str | None, overrides: tuple[str, ...], junit: Path | None, as_json: bool
) -> Exit:
    from runner.cli.event_loop import run_async
    from runner.cli.golden import play_tests

    plan = _plan(workflow, profile, overrides)
    results = run_async(play_tests(plan))
    if junit is not None:
        _write_junit(junit, plan.name, results)
    untested = _untested(plan)
    if as_json:
        console().print_json({"tests": [vars(result) for result in results], "untested": untested})
    else:
        _print(results, untested, console())
    return Exit.OK if all(result.passed for result in results) else Exit.USAGE


def _plan(workflow: Path, profile: str | None, overrides: tuple[str, ...]) -> Plan:
    """The plan, without the dataset where no test reads a row of it: whoever tests need not have the data."""
    from runner.build.plan import build
    from runner.diag.diagnostic import ConfigError

    loaded = inspect(locate(workflow), profile, overrides)
    config = loaded.config
    if config is not None and not any(isinstance(test.row, int) for test in config.tests):
        config = config.model_copy(update={"dataset": config.dataset.model_copy(update={"path": None})})
        loaded.report.findings = [one for one in loaded.report.findings if one.code != "dataset-missing"]
    if config is None or loaded.report.errors:
        raise ConfigError(loaded.report)
    return build(config)


def _untested(plan: Plan) -> list[str]:
    config = plan.config
    tools = [f"tools.{name}" for name, section in config.tools.items() if not section.tests]
    return tools + [f"graders.{name}" for name, section in config.graders.items() if not section.tests]


def _write_junit(file: Path, name: str, results: Sequence[Tested]) -> None:
    from runner.cli.junit import Case, Suite, junit_xml

    suites = [
        Suite(part, [Case(each.title, each.seconds, "" if each.passed else each.message or "failed", each.place)
                     for each in results if each.part == part])
        for part in dict.fromkeys(result.part for result in results)
    ]  # fmt: skip
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(junit_xml(name, suites), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"the JUnit file `{file}` cannot be written: {error.strerror}", "name another") from error


def _print(results: Sequence[Tested], untested: Sequence[str], speaker: Console) -> None:
    style = speaker.data
    parts = list(dict.fromkeys(result.part for result in results))
    width = max(map(len, parts), default=0)
    for part in parts:
        _print_part(part.ljust(width), [result for result in results if result.part == part], speaker)
    if untested:
        speaker.out(style.warn("no tests") + f": {', '.join(untested)}")
    speaker.out(_verdict(results, style))


def _print_part(name: str, results: Sequence[Tested], speaker: Console) -> None:
    style = speaker.data
    failed = [result for result in results if not result.passed]
    if not failed:
        speaker.out(f"{style.ok('✓')} {name}  {len(results)} passed")
        return
    speaker.out(f"{style.bad('✗')} {name}  {len(failed)} of {len(results)} failed")
    for result in failed:
        where = f"{result.place} " if result.place else ""
        speaker.out(f"    {style.dim(where)}{result.title}: {result.message}")


def _verdict(results: Sequence[Tested], style: Style) -> str:
    if not results:
        return "nothing is tested: add [[tools.NAME.tests]], [[graders.NAME.tests]] or [[tests]] to the file"
    failed = sum(not result.passed for result in results)
    text = f"{len(results) - failed} passed" + (f", {failed} failed" if failed else "")
    return style.bad(text) if failed else style.ok(text)
