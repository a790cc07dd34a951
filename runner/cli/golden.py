"""The golden cases of a file, played: each tool's, server's and grader's, and whole rollouts. No policy is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING

from runner.cli.console import console

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runner.build.live import Live
    from runner.build.plan import Plan
    from runner.config.config import RolloutConfig
    from runner.config.graders import GraderTest
    from runner.config.tools import ToolTest
    from runner.graders.trial import GraderTrial
    from runner.tools.tool import Tool
    from runner.tools.trial import Trial


@dataclass(frozen=True)
class Tested:
    """One test. `part` is `tools.NAME`, `mcp.NAME`, `graders.NAME` or `tests`; `number` counts from 1.

    `place` is file:line:column; `name` is what a rollout's test is called, or empty.
    """

    part: str
    number: int
    passed: bool
    message: str
    place: str
    seconds: float = 0.0
    name: str = ""

    @property
    def title(self) -> str:
        return self.name or f"test {self.number}"


async def play_tests(plan: Plan) -> list[Tested]:
    """Play them all, in the order of the file. What no test asks is neither connected nor started.

    Raises what `Plan.open` does.
    """
    from runner.models.absent import AbsentModel

    config = plan.config
    servers = bool(plan.tests) or any(section.tests for section in config.mcp.values())
    if not _may_need_sandboxes(config):
        plan = replace(plan, sandboxes=())
    async with plan.open(model=AbsentModel("a test asks no policy"), servers=servers) as live:
        for notice in live.notices:
            console().warn(notice)
        parts = _tools(live), _graders(live), _rollouts(live)
        return [result for part in parts async for result in part]


def _may_need_sandboxes(config: RolloutConfig) -> bool:
    """Whether a test may start one; where none does, a kind that this machine lacks is no hindrance."""
    from runner.config.builtins import SandboxedTool

    tools = any(section.tests for section in config.tools.values() if isinstance(section, SandboxedTool))
    kinds = {section.kind for section in config.graders.values() if section.tests}
    return bool(config.tests) or tools or not kinds.isdisjoint(("command", "python"))


async def _tools(live: Live) -> AsyncIterator[Tested]:
    from runner.records.completion import Caller
    from runner.records.event import ignore
    from runner.runtime.resources import open_resources
    from runner.runtime.sandboxes import open_scope
    from runner.tools.trial import try_tool

    for part, index, test, tool in _tool_tests(live):
        name = part[1]
        if isinstance(tool, str):
            yield _tested(live.plan, part, index, (False, tool), 0.0)
            continue
        caller = Caller(f"test/{name}/{index}", test.row)
        async with (
            open_resources(live, ignore, f"test/{name}") as resources,
            open_scope(live, caller, resources, ignore) as scope,
        ):
            result = await try_tool(tool, _tool_trial(test), scope)
        yield _tested(live.plan, part, index, (result.passed, result.message), result.seconds)


def _tool_tests(live: Live) -> Iterator[tuple[tuple[str, str], int, ToolTest, Tool | str]]:
    """Each test of a tool: its section, its number there, and the tool, or why there is none."""
    from runner.tools.mcp.names import wire_name

    config, tools = live.plan.config, live.plan.tools
    for name, section in config.tools.items():
        for index, test in enumerate(section.tests):
            yield ("tools", name), index, test, tools[name]
    for name, server in config.mcp.items():
        for index, asked in enumerate(server.tests):
            found = tools.get(wire_name(f"{name}/{asked.tool}"))
            yield ("mcp", name), index, asked, found or f"the file takes no tool `{asked.tool}` of the MCP server"


async def _graders(live: Live) -> AsyncIterator[Tested]:
    from runner.build.live import Bill
    from runner.graders.trial import try_grader
    from runner.records.completion import Caller
    from runner.records.event import ignore
    from runner.runtime.resources import open_resources
    from runner.runtime.sandboxes import fresh_sandboxes

    for part in live.plan.graders:
        section = live.plan.config.graders[part.name]
        timeout = section.timeout or live.plan.config.limits.grader_time
        for index, test in enumerate(section.tests):
            caller = Caller(f"test/{part.name}/{index}", test.row)
            roles, fresh = live.judges(caller, Bill()), fresh_sandboxes(live, caller)
            async with open_resources(live, ignore, f"test/{part.name}") as resources:
                started = perf_counter()
                result = await try_grader(
                    part.grader, _grader_trial(test), roles=roles, resources=resources, timeout=timeout, fresh=fresh
                )
                seconds = perf_counter() - started
            yield _tested(live.plan, ("graders", part.name), index, (result.passed, result.message), seconds)


async def _rollouts(live: Live) -> AsyncIterator[Tested]:
    from runner.runtime.trial import try_rollout

    for index, test in enumerate(live.plan.tests):
        result = await try_rollout(live, test)
        told = _tested(live.plan, (), index, (result.passed, result.message), result.seconds)
        yield replace(told, name=test.section.name or "")


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


def _tested(plan: Plan, part: tuple[str, ...], index: int, verdict: tuple[bool, str], seconds: float) -> Tested:
    place = plan.config.origins.value_place((*part, "tests", index)) if plan.config.file else None
    name = ".".join(part) or "tests"
    return Tested(name, index + 1, *verdict, str(place or ""), round(seconds, 6))
