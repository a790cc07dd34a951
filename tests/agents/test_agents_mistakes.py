"""What becomes of an agent or a grader that does it wrong: in `eval` and in `serve`, for every kind of either.

The table of the page is the one that is tested: its cells name the outcome, the sentences stand here.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("strands")

from runner.diag.diagnostic import ConfigError
from runner.simulate.starts import AGENT_LOOP

PAGE = Path(__file__).parents[2] / "docs" / "workflows.md"
CODE = '''
import asyncio
import time
from abc import abstractmethod
from runner import AgentWorkflow, Grader, OsmosisRolloutModel, OsmosisStrandsAgent, RolloutAgentLoop
from runner import get_rollout_context
from strands import Agent, tool


async def swallow():
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        pass


class Source:
    messages = []


def two_samples():
    for name in "ab":
        get_rollout_context().register_agent(name, Source())


class Workflow(AgentWorkflow):
    async def run(self, ctx):
        await ctx.chat(ctx.prompt)
        return await self.then()

    async def then(self): ...

class workflow_abstract(AgentWorkflow): ...

class workflow_arguments(AgentWorkflow):
    async def run(self): ...

class workflow_made(AgentWorkflow):
    def __init__(self, one, two): ...
    async def run(self, ctx): ...

class workflow_sync(AgentWorkflow):
    def run(self, ctx): ...

class workflow_returns(Workflow):
    async def then(self): return "4"

class workflow_blocks(Workflow):
    async def then(self): time.sleep(0.3)

class workflow_swallows(Workflow):
    async def then(self): await swallow()

class workflow_cancels(Workflow):
    async def then(self): raise asyncio.CancelledError

class workflow_two(Workflow):
    async def then(self): two_samples()

class workflow_forgets(Workflow): ...


async def plain_arguments(ctx, more): ...

def plain_sync(ctx): ...

async def plain_returns(ctx):
    await ctx.chat(ctx.prompt)
    return 4

async def plain_blocks(ctx):
    await ctx.chat(ctx.prompt)
    time.sleep(0.3)

async def plain_swallows(ctx):
    await ctx.chat(ctx.prompt)
    await swallow()

async def plain_cancels(ctx):
    await ctx.chat(ctx.prompt)
    raise asyncio.CancelledError

async def plain_two(ctx):
    await ctx.chat(ctx.prompt)
    two_samples()

async def plain_forgets(ctx):
    await ctx.chat(ctx.prompt)


class Loop(RolloutAgentLoop):
    name = "loop"

    def get_tools(self, request):
        return []

    async def run(self, ctx):
        messages = list(ctx.request.messages)
        messages.append((await ctx.chat(messages)).message)
        await self.then()
        return ctx.complete(messages)

    async def then(self): ...

class loop_abstract(RolloutAgentLoop):
    name = "loop"
    def get_tools(self, request): return []

class loop_arguments(Loop):
    async def run(self): ...

class loop_made(Loop):
    def __init__(self, one): ...

class loop_tools(Loop):
    def get_tools(self): return []

class loop_sync(Loop):
    def run(self, ctx): ...

class loop_returns(Loop):
    async def run(self, ctx): return [await ctx.chat(ctx.request.messages)]

class loop_blocks(Loop):
    async def then(self): time.sleep(0.3)

class loop_swallows(Loop):
    async def then(self): await swallow()

class loop_cancels(Loop):
    async def then(self): raise asyncio.CancelledError

class loop_two(Loop):
    async def then(self): two_samples()

class loop_forgets(Loop): ...


@tool
async def blocks() -> str:
    """Block."""
    time.sleep(0.3)
    return "late"

@tool
async def swallows() -> str:
    """Swallow."""
    await swallow()
    return "late"

@tool
async def cancels() -> str:
    """Cancel."""
    raise asyncio.CancelledError

def made(*tools):
    return Agent(model=OsmosisRolloutModel(), tools=list(tools), callback_handler=None)

class strands_abstract(Agent):
    @abstractmethod
    def more(self): ...
    def __init__(self):
        raise TypeError("Can't instantiate abstract class")

def strands_arguments(one, two): return made()

def strands_returns(): return [made()]

def strands_forgot_it(): made()

def strands_blocks(): return made(blocks)

def strands_swallows(): return made(swallows)

def strands_cancels(): return made(cancels)

def strands_two():
    named = [OsmosisStrandsAgent(name=name, model=OsmosisRolloutModel(), callback_handler=None) for name in "ab"]
    return named[1]

def strands_same():
    return [OsmosisStrandsAgent(name="a", model=OsmosisRolloutModel(), callback_handler=None) for _ in "ab"][1]

def strands_forgets(): return made()


class grader_abstract(Grader): ...

class grader_arguments(Grader):
    async def grade(self): ...

class grader_made(Grader):
    def __init__(self, one, two): ...
    async def grade(self, ctx): ...

class grader_sync(Grader):
    def grade(self, ctx): ...

class grader_returns(Grader):
    async def grade(self, ctx): return "good"

class grader_blocks(Grader):
    async def grade(self, ctx): time.sleep(0.3)

class grader_swallows(Grader):
    async def grade(self, ctx): await swallow()

class grader_cancels(Grader):
    async def grade(self, ctx): raise asyncio.CancelledError

class grader_two(Grader):
    async def grade(self, ctx):
        for name in ("main", "other"):
            ctx.set_sample_reward(name, 1.0)

class grader_forgets(Grader):
    async def grade(self, ctx): ...
'''
NOT_ASYNC = "put `async` before its `def`"
BLOCKED = "the event loop stood still meanwhile: use `await` for what waits, `asyncio.to_thread` for what works"
SWALLOWED = "after `except asyncio.CancelledError`, `raise` it again"
CANCELLED = "CancelledError was raised by the code itself, nobody cancelled the rollout: raise another error"
SILENT = "add `[graders.NAME]`, or let the agent return a `reward`"
TWO = "return the messages of the agent that counts, or register that agent alone"

MISTAKES: dict[str, dict[str, str]] = {
    "is abstract": {
        "workflow_abstract": "it does not define `run`", "loop_abstract": "it does not define `run`",
        "strands_abstract": "it is made once here", "grader_abstract": "does not define `async def grade(self, ctx)`",
    },
    "takes other arguments, or is not `async`": {
        "workflow_arguments": "it is called with (self, ctx)", "workflow_made": "it is called with the config",
        "workflow_sync": NOT_ASYNC, "plain_arguments": "it is called with (ctx)", "plain_sync": NOT_ASYNC,
        "loop_arguments": "it is called with (self, ctx)", "loop_made": "its keys are keyword arguments",
        "loop_tools": "it is called with (self, request)", "loop_sync": NOT_ASYNC,
        "strands_arguments": "it is called with the config", "grader_arguments": "it is called with (self, ctx)",
        "grader_made": "it is called with its config, or None", "grader_sync": NOT_ASYNC,
    },
    "returns something else": {
        "workflow_returns": "return AgentWorkflowOutput, a list of messages, or None",
        "plain_returns": "return AgentWorkflowOutput, a list of messages, or None",
        "loop_returns": "end it with `return ctx.complete(messages)`",
        "strands_returns": "an agent is a subclass of `AgentWorkflow`",
        "strands_forgot_it": "return the workflow or the agent that it made",
        "grader_returns": "a score must be a number, found str",
    },
    "blocks the event loop past its time": {
        "workflow_blocks": BLOCKED, "plain_blocks": BLOCKED, "loop_blocks": BLOCKED, "strands_blocks": BLOCKED,
        "grader_blocks": BLOCKED,
    },
    "swallows its cancellation when its time is over": {
        "workflow_swallows": SWALLOWED, "plain_swallows": SWALLOWED, "loop_swallows": SWALLOWED,
        "strands_swallows": "not finished within", "grader_swallows": SWALLOWED,
    },
    "raises `CancelledError` itself": {
        "workflow_cancels": CANCELLED, "plain_cancels": CANCELLED, "loop_cancels": CANCELLED, "strands_cancels": "",
        "grader_cancels": CANCELLED,
    },
    "registers two samples": {
        "workflow_two": TWO, "plain_two": TWO, "loop_two": "", "strands_two": "",
        "strands_same": "give each agent a `name` of its own", "grader_two": "a rollout has one sample, here `main`",
    },
    "forgets the reward": {
        "workflow_forgets": SILENT, "plain_forgets": SILENT, "loop_forgets": SILENT, "strands_forgets": SILENT,
        "grader_forgets": "return a number, or call ctx.set_reward(...)",
    },
}  # fmt: skip
"""By mistake and by the name of who makes it, the words that tell its author what to do."""
COLUMNS = {"workflow": 1, "plain": 1, "loop": 2, "strands": 3, "grader": 4}
CASES = [(mistake, name) for mistake, names in MISTAKES.items() for name in names]


def documented() -> dict[str, list[str]]:
    """The rows of the page's table, by their first cell."""
    rows = [
        line.strip("| \n").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines() if line[:1] == "|"
    ]
    return {row[0].strip(): row for row in rows}


def files(name: str) -> tuple[str, str]:
    """`[workflow]` and the rest of the file in which `name` is what plays, or what grades."""
    time = "100ms" if name.endswith(("blocks", "swallows")) else "30s"  # a busy machine is no mistake of the agent
    if name.startswith("grader"):
        return 'agent = "chat"', f'[graders.own]\nkind = "python"\ncall = "./code.py:{name}"\ntimeout = "{time}"\n'
    graders = "" if name.endswith("forgets") else '[graders.answer]\nkind = "exact"\n'
    return f'agent = "./code.py:{name}"', f'{graders}[limits]\ntime = "{time}"\n'


@pytest.mark.parametrize(("mistake", "name"), CASES, ids=[name for _, name in CASES])
def test_a_mistake_has_its_documented_outcome(project: Any, stage: Any, wire: Any, mistake: str, name: str) -> None:
    cell = documented()[mistake][COLUMNS[name.split("_")[0]]]
    words = MISTAKES[mistake][name]
    project.write("code.py", CODE)
    workflow, toml = files(name)
    try:
        stage.plan(toml, "", workflow)
    except ConfigError as error:
        said = " ".join(f"{each.message}; {each.label}" for each in error.report if each.severity == "error")
        assert words in said
        assert "`validate`" in cell
        return
    tool = name.removeprefix("strands_") if name in ("strands_blocks", "strands_swallows", "strands_cancels") else ""
    first = [project.says(None, (tool, "{}"))] if tool else []
    outcome = project.play(toml, *first, project.says("4"), workflow=workflow)
    assert f"{outcome.status} `{outcome.stop_reason}`" in cell.replace("scored", "scored `final_answer`")
    assert words in ("" if outcome.failure is None else outcome.failure.message)
    model = wire.uses(tool, {}, "4") if tool else wire.Says(lambda messages: "4")
    for history in wire.played(stage, model, workflow=workflow, toml=toml, label="4", metadata={"ground_truth": "4"}):
        verdict = history.verdict
        # The first generation has one word for agent and grade: a rollout without a grade went well there.
        went_well = outcome.status == "scored" or (history.dialect == AGENT_LOOP and outcome.status == "ungraded")
        assert verdict.status == ("success" if went_well else "failure")
        assert verdict.reward == outcome.reward
        if outcome.failure is not None and outcome.failure.kind != "no_grader":
            assert words in verdict.message, verdict
        elif outcome.failure is not None and not went_well:
            assert "no grader configured: add `[graders.NAME]`" in verdict.message


def test_the_table_of_the_page_has_every_mistake() -> None:
    rows = documented()
    assert MISTAKES.keys() <= rows.keys()
    for mistake in MISTAKES:
        assert len(rows[mistake]) == 5
        assert all(re.search(r"`\w+`|scored", cell) for cell in rows[mistake][1:])
