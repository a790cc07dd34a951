"""Tools of Strands: time limits of those that an agent runs by itself, and what one of the file knows of its call."""

from __future__ import annotations

import time
from typing import Any

import pytest

pytest.importorskip("strands")

from runner.diag.diagnostic import ConfigError

EXACT = '[graders.answer]\nkind = "exact"\n'
OWN = '''
    import asyncio
    import time
    from runner import OsmosisRolloutModel, OsmosisStrandsAgent, AgentWorkflow
    from strands import Agent, tool

    @tool
    async def hangs() -> str:
        """Hang."""
        await asyncio.sleep(30)

    @tool
    def hangs_in_a_thread() -> str:
        """Hang."""
        time.sleep(0.6)

    @tool
    async def swallows() -> str:
        """Swallow."""
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "late"

    @tool
    async def blocks() -> str:
        """Block."""
        time.sleep(0.4)
        return "late"

    @tool
    async def cancels() -> str:
        """Cancel."""
        raise asyncio.CancelledError

    @tool
    async def times_out() -> str:
        """A time-out of its own."""
        raise TimeoutError("mine")

    @tool
    async def streams():
        """Stream."""
        for word in ("a", "b"):
            await asyncio.sleep(0.01)
            yield word

    @tool
    async def fine(text: str = "fine") -> str:
        """Be fine."""
        return text

    TOOLS = [hangs, hangs_in_a_thread, swallows, blocks, cancels, times_out, streams, fine]

    def plain():
        return Agent(model=OsmosisRolloutModel(), tools=TOOLS, callback_handler=None)

    class Ours(AgentWorkflow):
        async def run(self, ctx):
            model = OsmosisRolloutModel()
            agent = OsmosisStrandsAgent(model=model, tools=TOOLS, messages=ctx.prompt, callback_handler=None)
            await agent.invoke_async()
'''
LATE = "did not answer within 0.2 s."


def play_own(project: Any, *names: str, agent: str = "plain", limits: str = 'tool_time = "200ms"') -> Any:
    project.write("own.py", OWN)
    asks = project.says(None, *((name, "{}") for name in names))
    toml = f"{EXACT}[limits]\n{limits}\n"
    return project.play(toml, asks, project.says("4"), workflow=f'agent = "./own.py:{agent}"')


@pytest.mark.parametrize("agent", ["plain", "Ours"])
def test_a_tool_that_takes_too_long_is_answered_for(project: Any, agent: str) -> None:
    names = ("hangs", "hangs_in_a_thread", "swallows", "fine", "streams")
    started = time.monotonic()
    outcome = play_own(project, *names, agent=agent)
    assert time.monotonic() - started < 5
    assert (outcome.status, outcome.reward) == ("scored", 1.0), outcome.failure
    said = {
        message["tool_call_id"]: message["content"] for message in outcome.sample.messages if message["role"] == "tool"
    }
    assert [said[f"c{place}"] for place in range(3)] == [f"`{name}` {LATE}" for name in names[:3]]
    assert (said["c3"], said["c4"]) == ("fine", "b")
    spans = {span["name"]: span for span in outcome.sample.tool_spans}
    assert [spans[name]["status"] for name in names] == ["timeout", "timeout", "timeout", "ok", "ok"]
    assert 0.2 <= spans["hangs"]["seconds"] < 0.5


def test_a_tool_that_blocks_is_too_late_as_well(project: Any) -> None:
    outcome = play_own(project, "blocks")
    assert [span["status"] for span in outcome.sample.tool_spans] == ["timeout"]
    assert outcome.sample.messages[2]["content"] == f"`blocks` {LATE}"


@pytest.mark.parametrize(
    ("name", "said"), [("cancels", "CancelledError: the tool cancelled itself"), ("times_out", "mine")]
)
def test_what_a_tool_raises_is_an_answer(project: Any, name: str, said: str) -> None:
    """Strands would ask the model again and again after a tool that raises CancelledError, with no answer to it."""
    outcome = play_own(project, name, limits="turns = 5")
    assert (outcome.status, outcome.reward, outcome.sample.metrics["turns"]) == ("scored", 1.0, 2)
    assert said in outcome.sample.messages[2]["content"]
    assert [span["status"] for span in outcome.sample.tool_spans] == ["error"]


def test_the_rollouts_own_time_ends_a_tool_of_strands(project: Any) -> None:
    outcome = play_own(project, "hangs", limits='time = "200ms"')
    assert (outcome.status, outcome.stop_reason) == ("failed", "rollout_timeout")


# -- tools of the file under `@tool(context=True)`


TOLD = '''
    from strands import ToolContext, tool

    @tool(context=True)
    def whose(text: str, tool_context: ToolContext) -> str:
        """Say whose it is.

        Args:
            text: A text.
        """
        use = tool_context.tool_use
        return f"{text} {use['name']} {use['input']} {tool_context.agent.name}"

    @tool(context="ctx")
    async def later(ctx: ToolContext, number: int = 3) -> str:
        """Say it later."""
        return f"{number} {ctx.tool_use['toolUseId']} {sorted(ctx.tool_use['input'])}"

    @tool
    def with_agent(text: str, agent=None) -> str:
        """Say with the agent."""
        return f"{text} {agent.name}"
'''
TOOLS = "".join(f'[tools.{name}]\ncall = "./told.py:{name}"\n' for name in ("whose", "later", "with_agent"))


def test_a_tool_of_the_file_is_told_of_its_call(project: Any) -> None:
    project.write("told.py", TOLD)
    calls = ("whose", '{"text": "a"}'), ("later", "{}"), ("with_agent", '{"text": "b"}')
    model = project.Says([project.says(None, *calls), project.says("4")])
    outcome = project.play(EXACT + TOOLS, workflow='agent = "strands"', model=model)
    assert (outcome.status, outcome.reward) == ("scored", 1.0), outcome.failure
    contents = [message["content"] for message in outcome.sample.messages[2:5]]
    assert contents == ["a whose {'text': 'a'} Strands Agents", "3 c1 []", "b Strands Agents"]


def test_without_an_agent_of_strands_it_is_told_of_the_call_alone(project: Any) -> None:
    project.write("told.py", TOLD)
    calls = ("later", '{"number": 5}'), ("whose", '{"text": "a"}')
    outcome = project.play(EXACT + TOOLS, project.says(None, *calls), project.says("4"), workflow='agent = "tools"')
    later, whose = (message["content"] for message in outcome.sample.messages[2:4])
    assert later == "5  ['number']"
    assert "no agent of Strands called this tool" in whose


def test_what_strands_gives_is_no_parameter_of_the_model(project: Any) -> None:
    project.write("told.py", TOLD)
    plan = project.build(EXACT + TOOLS)
    assert [list(spec.parameters["properties"]) for spec in plan.offered] == [["text"], ["number"], ["text"]]
    declared = '[tools.whose]\ncall = "./told.py:whose"\n[tools.whose.parameters]\ntype = "object"\n'
    sound = project.build(EXACT + declared + 'properties = { text = { type = "string" } }\nrequired = ["text"]\n')
    assert list(sound.offered[0].parameters["properties"]) == ["text"]
    with pytest.raises(ConfigError):
        project.build(EXACT + declared + 'properties = { other = { type = "string" } }\n')


# -- a dataset of the newest generation


@pytest.mark.parametrize("given", [{"level": 3}, '{"level": 3}'])
def test_metadata_is_what_the_column_holds(project: Any, given: Any) -> None:
    project.write(
        "agent.py",
        """
        async def run(ctx):
            level = ctx.metadata["level"]
            assert ctx.row["metadata"] and ctx.row["other"] == 1
            ctx.metadata["level"] = None
            await ctx.chat([*ctx.prompt, {"role": "user", "content": f"level {level}"}])

        def grade(ctx):
            return float(ctx.metadata["level"] == 3 and ctx.row["other"] == 1)
        """,
    )
    row = {"user_prompt": "2+2?", "ground_truth": "4", "metadata": given, "other": 1}
    toml = '[graders.own]\nkind = "python"\ncall = "./agent.py:grade"\n'
    outcome = project.play(toml, project.says("4"), workflow='agent = "./agent.py:run"', row=row)
    assert (outcome.status, outcome.reward) == ("scored", 1.0), outcome.failure
    assert outcome.sample.messages[1]["content"] == "level 3"


@pytest.mark.parametrize("given", [None, "", "no JSON", "{torn", "[1]", 3])
def test_metadata_is_the_row_where_the_column_holds_no_object(project: Any, given: Any) -> None:
    project.write(
        "agent.py", "async def run(ctx):\n    assert ctx.metadata == ctx.row\n    await ctx.chat(ctx.prompt)\n"
    )
    row = {"user_prompt": "2+2?", "ground_truth": "4", "metadata": given}
    outcome = project.play(EXACT, project.says("4"), workflow='agent = "./agent.py:run"', row=row)
    assert (outcome.status, outcome.reward) == ("scored", 1.0), outcome.failure
