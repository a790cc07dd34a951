"""Agents of Strands in a rollout: what the placeholder is, what becomes of it, and that the engine's rules hold."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("strands")

from runner import OsmosisRolloutModel, OsmosisStrandsAgent, RolloutContext
from runner.records.failure import ContextOverflow, ModelUnavailable
from runner.strands.model import EngineModel
from runner.strands.postponed import litellm_model

AGENT = """
    from pydantic import BaseModel
    from strands import Agent, tool
    from strands.types.exceptions import ContextWindowOverflowException, MaxTokensReachedException
    from runner import AgentWorkflow, OsmosisRolloutModel, OsmosisStrandsAgent

    CALLS = []

    @tool
    def add(a: int, b: int) -> str:
        "Add two numbers."
        CALLS.append((a, b))
        return str(a + b)

    @tool
    def breaks() -> str:
        "Break."
        raise KeyError("broken")

    class Sum(BaseModel):
        "The sum."
        total: int

    def made(ctx, **more):
        return OsmosisStrandsAgent(
            model=OsmosisRolloutModel(), tools=[add, breaks], messages=ctx.prompt, callback_handler=None, **more
        )

    class Play(AgentWorkflow):
        async def run(self, ctx):
            agent = made(ctx, name="a")
            %s
"""


def play(project: Any, body: str, *answers: Any, toml: str = '[graders.answer]\nkind = "exact"\n', **more: Any) -> Any:
    name = f"agents{len(list(project.folder.glob('agents*.py')))}.py"  # a file that changes within a second is cached
    project.write(name, AGENT % body.replace("\n", "\n" + " " * 12))
    return project.play(toml, *answers, workflow=f'agent = "./{name}:Play"', **more)


def test_the_placeholder_is_a_model_that_cannot_be_called() -> None:
    model = OsmosisRolloutModel(params={"temperature": 1.0}, max_tokens=5)
    assert isinstance(model, litellm_model())
    for call in (
        lambda: model.stream([]),
        lambda: model.structured_output(dict, []),
        lambda: model.update_config(params={}),
        model.get_config,
        lambda: model.format_request([]),
        lambda: asyncio.run(model.count_tokens([])),
    ):
        with pytest.raises(NotImplementedError, match="only stands for the model"):
            call()
    with pytest.raises(TypeError, match="takes no `model_id`"):
        OsmosisRolloutModel(model_id="openai/gpt-5.2")
    plain = model.for_sample("s", RolloutContext("http://cluster/v1", "key", "r7"))
    assert isinstance(plain, litellm_model())
    assert not isinstance(plain, EngineModel)
    assert plain.get_config() == {"model_id": "openai/osmosis-rollout", "params": {"temperature": 1.0, "max_tokens": 5}}
    assert plain.client_args == {
        "api_base": "http://cluster/v1",
        "api_key": "key",
        "extra_headers": {"x-rollout-id": "r7", "x-sample-id": "s"},
    }
    with pytest.raises(RuntimeError, match="has no address"):
        model.for_sample("s", RolloutContext(rollout_id="r"))


def test_an_agent_outside_a_rollout() -> None:
    with pytest.raises(RuntimeError, match="no active RolloutContext"):
        OsmosisStrandsAgent(model=OsmosisRolloutModel())


def test_its_sample_is_named_by_name_or_id_or_at_random() -> None:
    context = RolloutContext("http://cluster/v1", "key", "r7")
    with context:
        OsmosisStrandsAgent(model=OsmosisRolloutModel(), name="n", agent_id="i")
        OsmosisStrandsAgent(model=OsmosisRolloutModel(), agent_id="i")
        OsmosisStrandsAgent(OsmosisRolloutModel(), [{"role": "user", "content": "hi"}])
        with pytest.raises(ValueError, match="`n` is registered already"):
            OsmosisStrandsAgent(model=OsmosisRolloutModel(), name="n")
    assert context.names[:2] == ("n", "i")
    assert len(context.names[2]) == 32


def test_another_model_makes_it_an_agent_and_nothing_more() -> None:
    model = litellm_model()(model_id="openai/x")
    context = RolloutContext("http://cluster/v1", "key", "r7")
    with context:
        agent = OsmosisStrandsAgent(model=model, messages=None)
    assert agent.model is model
    assert context.names == ()


def test_limits_hold_for_tools_that_strands_runs(project: Any) -> None:
    says = project.says
    calls = says("", ("add", '{"a": 1, "b": 2}'), ("add", '{"a": 3, "b": 4}'))
    toml = '[limits]\ntool_calls = 3\n[graders.answer]\nkind = "exact"\n'
    outcome = play(project, "await agent.invoke_async()", calls, toml=toml)
    assert (outcome.status, outcome.stop_reason) == ("scored", "max_tool_calls")
    assert [span["status"] for span in outcome.sample.tool_spans] == ["ok", "ok", "ok"]
    outcome = play(
        project, "await agent.invoke_async()", calls, toml='[limits]\nturns = 2\n[graders.a]\nkind = "exact"\n'
    )
    assert outcome.stop_reason == "max_turns"
    assert len(outcome.sample.calls) == 2


def test_bad_calls_are_counted_and_failing_tools_recorded(project: Any) -> None:
    says = project.says
    bad = says("", ("add", '{"a": "x"}'), ("nothing", "{}"), ("breaks", "{}"), ("add", "{no json"))
    outcome = play(project, "await agent.invoke_async()", bad, says("4"))
    assert outcome.reward == 1.0
    assert [span["status"] for span in sorted(outcome.sample.tool_spans, key=lambda span: span["tool_call_id"])] == [
        "bad_call", "bad_call", "error", "bad_call",
    ]  # fmt: skip
    sent = outcome.sample.messages[1]["tool_calls"]
    assert sent[3]["function"]["arguments"] == "{no json"
    toml = '[limits]\nmalformed_calls = 2\n[graders.a]\nkind = "exact"\n'
    assert play(project, "await agent.invoke_async()", bad, says("4"), toml=toml).stop_reason == "malformed_calls"


def test_an_answer_that_was_cut_off_is_a_limit_and_no_failure(project: Any) -> None:
    says = project.says
    outcome = play(project, "await agent.invoke_async()", says("Thi", finish="length"))
    assert (outcome.status, outcome.stop_reason) == ("scored", "max_tokens")
    body = (
        "try:\n    await agent.invoke_async()\nexcept MaxTokensReachedException:\n    await agent.invoke_async('go on')"
    )
    mended = play(project, body, says("Thi", finish="length"), says("4"))
    assert (mended.stop_reason, mended.reward) == ("final_answer", 1.0)


def test_a_conversation_that_was_too_long_is_shortened_or_ends_it(project: Any) -> None:
    says, overflow = project.says, ContextOverflow("too long")
    row = {"messages": [{"role": "user" if turn % 2 == 0 else "assistant", "content": "x"} for turn in range(9)],
           "ground_truth": "4"}  # fmt: skip
    outcome = play(project, "await agent.invoke_async()", overflow, says("4"), row=row)
    assert (outcome.stop_reason, outcome.reward) == ("final_answer", 1.0)
    body = (
        "def refuse(agent, e=None, **_):\n    raise e\n"
        "agent.conversation_manager.reduce_context = refuse\nawait agent.invoke_async()"
    )
    ended = play(project, body, overflow, row=row)
    assert (ended.status, ended.stop_reason) == ("scored", "context_overflow")


def test_a_model_that_does_not_answer(project: Any) -> None:
    busy = ModelUnavailable("too many requests", status=429)
    outcome = play(project, "await agent.invoke_async()", busy)
    assert (outcome.status, outcome.failure.boundary, outcome.failure.kind) == ("failed", "model", "model_unavailable")
    body = (
        "from strands.event_loop._retry import ModelRetryStrategy\n"
        "again = made(ctx, name='b', retry_strategy=ModelRetryStrategy(max_attempts=3, initial_delay=0))\n"
        "await again.invoke_async()\nreturn [{'role': 'assistant', 'content': '4'}]"
    )
    assert play(project, body, busy, project.says("4")).reward == 1.0
    swallowed = (
        "try:\n    await agent.invoke_async()\nexcept Exception:\n    return [{'role': 'assistant', 'content': '4'}]"
    )
    assert play(project, swallowed, ModelUnavailable("gone")).status == "failed"


def test_structured_output_both_ways(project: Any) -> None:
    says = project.says
    ask = "await agent.model.structured_output(Sum, agent.messages).__anext__()"
    old = f"result = {ask}\nassert result['output'].total == 4"
    model = project.Says([says("", ("Sum", '{"total": 4}'), finish="stop")])
    outcome = play(project, f"{old}\nreturn [{{'role': 'assistant', 'content': '4'}}]", model=model)
    assert outcome.reward == 1.0, outcome.failure
    assert model.asked[0][1] == ["Sum"]
    assert model.asked[0][2].extra == {"tool_choice": "required"}
    new = "result = await agent.invoke_async(structured_output_model=Sum)\nassert result.structured_output.total == 4"
    answers = says("not yet"), says("", ("Sum", '{"total": 4}'))
    model = project.Says(answers)
    outcome = play(project, f"{new}\nreturn [{{'role': 'assistant', 'content': '4'}}]", model=model)
    assert outcome.reward == 1.0, outcome.failure
    forced = model.asked[1][2].extra["tool_choice"]
    assert forced in ("required", {"type": "function", "function": {"name": "Sum"}})  # versions of Strands differ


def test_what_was_said_is_sent_to_the_letter(project: Any) -> None:
    """Spaces in arguments, an answer without text, an odd name, thoughts, and what the prompt brought."""
    says = project.says
    given = [
        {"role": "user", "content": "q", "name": "ann"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "p", "type": "function", "function": {"name": "add", "arguments": '{"a":1,"b":1}'}}]},
        {"role": "tool", "tool_call_id": "p", "name": "add", "content": "2"},
        {"role": "user", "content": [{"type": "text", "text": "and this?"}, {"type": "image_url", "image_url": {"url": "http://x/y.png"}}]},
    ]  # fmt: skip
    odd = says("  ", ("an odd name!", '{ "a":1 }'), reasoning="hm")
    model = project.Says([odd, says(""), says("4")])
    row = {"messages": given, "ground_truth": "4"}
    outcome = play(project, "await agent.invoke_async()\nawait agent.invoke_async('again')", model=model, row=row)
    assert outcome.reward == 1.0, outcome.failure
    first, second, third = (messages for messages, *_ in model.asked)
    assert first == given
    assert second[4] == odd.message
    assert third[6] == {"role": "assistant", "content": ""}
    assert third[7] == {"role": "user", "content": "again"}
    assert [message["role"] for message in outcome.sample.messages][-1] == "assistant"


def test_events_that_callbacks_hear(project: Any) -> None:
    body = (
        "heard = []\n"
        "agent.callback_handler = lambda **event: heard.append(event)\n"
        "result = await agent.invoke_async()\n"
        "assert [e['data'] for e in heard if 'data' in e] == ['4'], heard\n"
        "assert [e['reasoningText'] for e in heard if 'reasoningText' in e] == ['hm']\n"
        "assert result.metrics.accumulated_usage['totalTokens'] == 15\n"
        "assert result.stop_reason == 'end_turn'"
    )
    outcome = play(project, body, project.says("4", reasoning="hm"))
    assert outcome.reward == 1.0, outcome.failure
    assert outcome.sample.messages[-1] == {"role": "assistant", "content": "4"}


# litellm rebuilds its pydantic models at the first call, and pydantic says what it thinks of them.
@pytest.mark.filterwarnings("ignore:Item '.*' on TypedDict class:UserWarning", "ignore::DeprecationWarning:litellm")
def test_litellms_own_way_is_a_switch_away(stage: Any) -> None:
    stage.write("agents.py", """
        from runner import AgentWorkflow, OsmosisRolloutModel, OsmosisStrandsAgent

        class Play(AgentWorkflow):
            async def run(self, ctx):
                model = OsmosisRolloutModel(params={"temperature": 0.5}, stream=False, through_litellm=True)
                agent = OsmosisStrandsAgent(name="a", model=model, messages=ctx.prompt, callback_handler=None)
                await agent.invoke_async()
    """)  # fmt: skip

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(workflow='agent = "./agents.py:Play"') as server:
            await server.start(controller.start_of("r", 3))
            await controller.until(2, seconds=30.0)
            assert controller.told("r")[1] == ("grader", "success", 1.0)
        (seen,) = controller.chats
        assert seen.headers["x-sample-id"] == "main"
        assert seen.body["temperature"] == 0.5

    stage.run(test)


def test_the_rows_system_prompt_stays_behind_the_agents_own(project: Any) -> None:
    model = project.Says([project.says("4")])
    row = {"system_prompt": "The row's.", "user_prompt": "q", "ground_truth": "4"}
    body = "own = made(ctx, name='b', system_prompt='The agent\\'s.')\nawait own.invoke_async()\nctx.log_event('done')"
    outcome = play(
        project, f"{body}\nreturn ctx.prompt[:0] + [{{'role': 'assistant', 'content': '4'}}]", model=model, row=row
    )
    assert outcome.reward == 1.0, outcome.failure
    assert [message["content"] for message in model.asked[0][0]] == ["The agent's.", "The row's.", "q"]


def test_time_ends_an_agent_in_the_middle_of_its_tool(project: Any) -> None:
    body = (
        "import asyncio\n"
        "@tool\nasync def sleep() -> str:\n    'Sleep.'\n    await asyncio.sleep(60)\n"
        "slow = OsmosisStrandsAgent(name='s', model=OsmosisRolloutModel(), tools=[sleep], messages=ctx.prompt)\n"
        "await slow.invoke_async()"
    )
    toml = '[limits]\ntime = "300ms"\n[graders.answer]\nkind = "exact"\n'
    outcome = play(project, body, project.says("", ("sleep", "{}")), toml=toml)
    assert (outcome.status, outcome.failure.kind) == ("failed", "rollout_timeout")
    assert outcome.timing["total"] < 5.0


def test_two_agents_of_which_one_counts(project: Any) -> None:
    body = "other = made(ctx, name='b')\nawait agent.invoke_async()\nawait other.invoke_async()"
    outcome = play(project, body, project.says("3"), project.says("4"))
    assert (outcome.status, outcome.failure.kind) == ("failed", "many_samples")
    said = play(project, f"{body}\nreturn (await agent.get_sample()).messages", project.says("4"), project.says("3"))
    assert said.reward == 1.0


def test_a_tool_that_ends_the_rollout_ends_the_agent(project: Any) -> None:
    """A tool of the file says that it cannot go on: no further call is paid for."""
    project.write("tools.py", """
        from runner.records.failure import ToolError

        def lost() -> str:
            raise ToolError("the database is gone")
    """)  # fmt: skip
    model = project.Says([project.says("", ("lost", "{}")), project.says("4")])
    toml = '[tools.lost]\ncall = "./tools.py:lost"\ndescription = "x"\n[graders.answer]\nkind = "exact"\n'
    outcome = project.play(toml, workflow='agent = "strands"', model=model)
    assert (outcome.status, outcome.failure.boundary) == ("failed", "tool")
    assert len(model.asked) == 1


def test_tools_of_the_file_in_an_agent_of_ones_own(project: Any) -> None:
    project.write("tools.py", "def twice(text: str) -> str:\n    'Say it twice.'\n    return text * 2\n")
    toml = '[tools.twice]\ncall = "./tools.py:twice"\n[graders.answer]\nkind = "exact"\n'
    body = (
        "from runner import strands_tools\n"
        "mine = OsmosisStrandsAgent(name='m', model=OsmosisRolloutModel(), tools=[add, *strands_tools(ctx)],\n"
        "                           messages=ctx.prompt, callback_handler=None)\n"
        "await mine.invoke_async()"
    )
    calls = project.says("", ("twice", '{"text":"a"}'), ("add", '{"a": 1, "b": 2}'))
    outcome = play(project, body, calls, project.says("4"), toml=toml)
    assert outcome.reward == 1.0, outcome.failure
    assert sorted(span["name"] for span in outcome.sample.tool_spans) == ["add", "twice"]
    assert [message["content"] for message in outcome.sample.messages[2:4]] == ["aa", "3"]
