"""An agent of Strands behind a server: what its sample is called, and that nothing of Strands gets lost on the way."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("strands")

from runner.simulate.starts import MULTI_SAMPLE

EXACT = '[graders.answer]\nkind = "exact"\n'
AGENTS = '''
    from pathlib import Path
    from pydantic import BaseModel
    from runner import AgentWorkflow, OsmosisRolloutModel, OsmosisStrandsAgent
    from strands import Agent, tool
    from strands.agent.conversation_manager import SlidingWindowConversationManager
    from strands.hooks import BeforeModelCallEvent, HookProvider

    def agent(prompt, **more):
        return OsmosisStrandsAgent(model=OsmosisRolloutModel(), messages=prompt, callback_handler=None, **more)

    class Named(AgentWorkflow):
        async def run(self, ctx):
            await agent(ctx.prompt, name="solver").invoke_async()

    class ById(AgentWorkflow):
        async def run(self, ctx):
            await agent(ctx.prompt, agent_id="by-id").invoke_async()

    class AtRandom(AgentWorkflow):
        async def run(self, ctx):
            await agent(ctx.prompt).invoke_async()

    class Odd(AgentWorkflow):
        async def run(self, ctx):
            await agent(ctx.prompt, name="Löser 1").invoke_async()

    class Two(AgentWorkflow):
        async def run(self, ctx):
            await agent(ctx.prompt, name="first").invoke_async()
            second = agent(ctx.prompt, name="second")
            await second.invoke_async()
            return (await second.get_sample()).messages

    class AsksFirst(AgentWorkflow):
        async def run(self, ctx):
            await ctx.chat(ctx.prompt)
            await agent(ctx.prompt, name="solver").invoke_async()

    class Calls(AgentWorkflow):
        async def run(self, ctx):
            await agent(ctx.prompt, name="solver", tools=[again]).invoke_async()

    @tool
    def again() -> str:
        """Ask again."""
        return "again"

    class ThroughLiteLLM(AgentWorkflow):
        async def run(self, ctx):
            model = OsmosisRolloutModel(through_litellm=True)
            made = OsmosisStrandsAgent(name="a", model=model, messages=ctx.prompt, callback_handler=None)
            await made.invoke_async()

    def plain():
        return Agent(model=OsmosisRolloutModel(), callback_handler=None)

    class Number(BaseModel):
        value: int

    class Structured(AgentWorkflow):
        async def run(self, ctx):
            made = await agent(ctx.prompt, name="solver").structured_output_async(Number, "How much?")
            told = {"role": "assistant", "content": str(made.value)}
            return [*ctx.prompt, told]

    class InOneCall(AgentWorkflow):
        async def run(self, ctx):
            result = await agent(ctx.prompt, name="solver").invoke_async(structured_output_model=Number)
            return [*ctx.prompt, {"role": "assistant", "content": str(result.structured_output.value)}]

    class Watch(HookProvider):
        def register_hooks(self, registry, **_):
            registry.add_callback(BeforeModelCallEvent, self.hear)

        def hear(self, event):
            with Path(__file__).with_name("heard.txt").open("a") as file:
                file.write(f"{id(self)}\\n")

    def short():
        return SlidingWindowConversationManager(window_size=2, per_turn=True)
'''


def play(stage: Any, wire: Any, name: str, answers: Any = None, toml: str = EXACT, **more: Any) -> list[Any]:
    stage.write("agents.py", AGENTS)
    workflow = more.pop("workflow", f'agent = "./agents.py:{name}"')
    model = answers or wire.Says(lambda messages: "4")
    found: list[Any] = wire.played(stage, model, workflow=workflow, toml=toml, label="4", metadata={}, **more)
    return found


@pytest.mark.parametrize(
    ("name", "sample"),
    [("Named", "solver"), ("ById", "by-id"), ("AtRandom", ""), ("Odd", "L%C3%B6ser 1"), ("Two", "first"),
     ("AsksFirst", "main"), ("plain", "main")],
)  # fmt: skip
def test_the_sample_is_called_as_the_agent_calls_it(stage: Any, wire: Any, name: str, sample: str) -> None:
    """In every chat call of the rollout and in the callback alike, or a controller would not know it again."""
    for history in play(stage, wire, name):
        assert (history.verdict.status, history.verdict.reward) == ("success", 1.0), history.verdict
        told = {headers["x-sample-id"] for headers in history.headers}
        assert len(told) == 1
        assert told == {sample} or (not sample and len(told.pop()) == 32)
        if history.dialect == MULTI_SAMPLE:
            assert list(history.bodies[-1][1]["samples"]) == [headers["x-sample-id"] for headers in history.headers[:1]]


def test_the_file_names_the_sample_of_agents_without_a_name(stage: Any, wire: Any) -> None:
    for name, sample in (("plain", "policy"), ("Named", "solver")):
        (history,) = play(stage, wire, name, serve='sample = "policy"', dialects=[MULTI_SAMPLE])
        assert list(history.bodies[-1][1]["samples"]) == [sample]


def test_a_limit_keeps_the_name(stage: Any, wire: Any) -> None:
    asks = wire.Says(lambda messages: wire.calls(("again", {})))
    for history in play(stage, wire, "Calls", asks, toml=EXACT + "[limits]\nturns = 2\n"):
        assert (history.verdict.status, history.verdict.reward) == ("success", 0.0)
        assert {headers["x-sample-id"] for headers in history.headers} == {"solver"}


def test_graders_know_the_sample_by_that_name(project: Any) -> None:
    project.write("agents.py", AGENTS)
    project.write("graders.py", "def names(ctx):\n    return float(list(ctx.samples) == ['solver'])\n")
    toml = '[graders.names]\nkind = "python"\ncall = "./graders.py:names"\n'
    outcome = project.play(toml, project.says("4"), workflow='agent = "./agents.py:Named"')
    assert outcome.reward == 1.0
    assert [call["sample_id"] for call in outcome.sample.calls] == ["solver"]
    asks = project.says(None, ("again", "{}"))
    limited = project.play(f"{toml}[limits]\nturns = 1\n", asks, workflow='agent = "./agents.py:Calls"')
    assert (limited.stop_reason, limited.reward) == ("max_turns", 1.0)


# litellm rebuilds its pydantic models at the first call, and pydantic says what it thinks of them.
@pytest.mark.filterwarnings("ignore:Item '.*' on TypedDict class:UserWarning", "ignore::DeprecationWarning:litellm")
def test_litellms_own_way_in_every_dialect(stage: Any, wire: Any) -> None:
    """Nothing of its calls is recorded but that they were made: without that, a controller would miss the sample."""
    histories = play(stage, wire, "ThroughLiteLLM")
    assert [(each.verdict.status, each.verdict.reward, each.chats) for each in histories] == [("success", 1.0, 1)] * 3
    assert {headers["x-sample-id"] for history in histories for headers in history.headers} == {"main"}


@pytest.mark.filterwarnings("ignore:Agent.structured_output")
@pytest.mark.parametrize("name", ["Structured", "InOneCall"])
def test_structured_output_through_a_server(stage: Any, wire: Any, name: str) -> None:
    def answer(messages: list[dict[str, Any]]) -> Any:
        return "done" if messages[-1]["role"] == "tool" else wire.calls(("Number", {"value": 4}))

    for history in play(stage, wire, name, wire.Says(answer)):
        assert (history.verdict.status, history.verdict.reward) == ("success", 1.0), history.verdict


def test_a_conversation_manager_and_hooks_through_a_server(stage: Any, wire: Any) -> None:
    """What the model is sent is what the manager left of the conversation; each rollout has a hook of its own."""
    tools = '[tools.add]\ncall = "./agents.py:add"\n'
    stage.write("agents.py", AGENTS + '\n    def add() -> str:\n        """Add."""\n        return "x"\n')
    workflow = 'agent = "strands"\nsystem = "Be brief."\n'
    workflow += 'config = { conversation_manager = "./agents.py:short", hooks = ["./agents.py:Watch"] }'
    turns = iter(range(1000))

    def answer(messages: list[dict[str, Any]]) -> Any:
        seen.append(len(messages))
        return "4" if next(turns) >= 3 else wire.calls(("add", {}))

    seen: list[int] = []
    more = {"label": "4", "metadata": {}, "dialects": [MULTI_SAMPLE]}
    (history,) = wire.played(stage, wire.Says(answer), workflow=workflow, toml=EXACT + tools, **more)
    assert (history.verdict.status, history.verdict.reward) == ("success", 1.0), history.verdict
    assert len(seen) == 4
    assert max(seen) <= 4, "the window was never shortened"
    heard = (stage.folder / "heard.txt").read_text().split()
    assert (len(heard), len(set(heard))) == (4, 1)
    assert history.asked[0]["messages"][0] == {"role": "system", "content": "Be brief."}
