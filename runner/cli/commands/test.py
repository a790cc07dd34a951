"""`osmosis-run test`: the golden cases that the file declares for its tools and graders.

No policy is asked, so this costs nothing; only a rubric's tests call their judge.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli.console import Console, Style, console
from runner.cli.exit import Exit
from runner.cli.options import build_plan, file_argument, json_option, profile_option, set_option

if TYPE_CHECKING:
    from runner.build.live import Live
    from runner.build.plan import Plan
    from runner.config.graders import GraderTest
    from runner.config.tools import ToolTest
    from runner.graders.trial import GraderTrial
    from runner.tools.trial import Trial


@dataclass(frozen=True)
class Tested:
    """One test. `part` is `tools.NAME` or `graders.NAME`; `number` counts from 1; `place` is file:line:column."""

    part: str
    number: int
    passed: bool
    message: str
    place: str


@click.command("test")
@file_argument
@profile_option
@set_option
@json_option
def command(workflow: Path, profile: str | None, overrides: tuple[str, ...], as_json: bool) -> Exit:
    """Run the tests that FILE (default: workflow.toml) declares for its tools and graders."""
    from runner.cli.event_loop import run_async

    plan = build_plan(workflow, profile, overrides)
    results = run_async(_run(plan))
    untested = _untested(plan)
    if as_json:
        console().print_json({"tests": [vars(result) for result in results], "untested": untested})
    else:
        _print(results, untested, console())
    return Exit.OK if all(result.passed for result in results) else Exit.USAGE


def _untested(plan: Plan) -> list[str]:
    config = plan.config
    tools = [f"tools.{name}" for name, section in config.tools.items() if not section.tests]
    return tools + [f"graders.{name}" for name, section in config.graders.items() if not section.tests]


async def _run(plan: Plan) -> list[Tested]:
    from runner.models.absent import AbsentModel

    async with plan.open(model=AbsentModel("a test asks no policy")) as live:
        return [result async for result in _tools(live)] + [result async for result in _graders(live)]


async def _tools(live: Live) -> AsyncIterator[Tested]:
    from runner.records.completion import Caller
    from runner.records.event import ignore
    from runner.runtime.resources import open_resources
    from runner.tools.tool import ToolScope
    from runner.tools.trial import try_tool

    for name, section in live.plan.config.tools.items():
        for index, test in enumerate(section.tests):
            async with open_resources(live, ignore, f"test/{name}") as resources:
                scope = ToolScope(Caller(f"test/{name}/{index}", test.row), resources)
                result = await try_tool(live.plan.tools[name], _tool_trial(test), scope)
            yield _tested(live.plan, ("tools", name), index, result.passed, result.message)


async def _graders(live: Live) -> AsyncIterator[Tested]:
    from runner.build.live import Bill
    from runner.graders.trial import try_grader
    from runner.records.completion import Caller
    from runner.records.event import ignore
    from runner.runtime.resources import open_resources

    for part in live.plan.graders:
        section = live.plan.config.graders[part.name]
        timeout = section.timeout or live.plan.config.limits.grader_time
        for index, test in enumerate(section.tests):
            roles = live.judges(Caller(f"test/{part.name}/{index}", test.row), Bill())
            async with open_resources(live, ignore, f"test/{part.name}") as resources:
                result = await try_grader(
                    part.grader, _grader_trial(test), roles=roles, resources=resources, timeout=timeout
                )
            yield _tested(live.plan, ("graders", part.name), index, result.passed, result.message)


def _tool_trial(test: ToolTest) -> Trial:
    from runner.tools.trial import Trial

    expect = {name: getattr(test.expect, name) for name in test.expect.model_fields_set}
    return Trial(test.args, expect, test.row)


def _grader_trial(test: GraderTest) -> GraderTrial:
    from runner.graders.trial import GraderTrial

    bounds = (test.expect.min, test.expect.max)
    # A test that names neither grades an empty answer.
    output = "" if test.output is None and test.messages is None else test.output
    return GraderTrial(bounds, output, test.messages, test.label, test.row, test.stop_reason or "final_answer")


def _tested(plan: Plan, part: tuple[str, str], index: int, passed: bool, message: str) -> Tested:
    place = plan.config.origins.value_place((*part, "tests", index)) if plan.config.file else None
    return Tested(".".join(part), index + 1, passed, message, str(place or ""))


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
        speaker.out(f"    {style.dim(where)}test {result.number}: {result.message}")


def _verdict(results: Sequence[Tested], style: Style) -> str:
    if not results:
        return "nothing is tested: add [[tools.NAME.tests]] or [[graders.NAME.tests]] to the file"
    failed = sum(not result.passed for result in results)
    text = f"{len(results) - failed} passed" + (f", {failed} failed" if failed else "")
    return style.bad(text) if failed else style.ok(text)
