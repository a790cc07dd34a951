"""What a workflow is handed, and what is recorded of what it does."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from runner.records.completion import Sampling, Usage
from runner.records.event import Logged, ModelCalled, RolloutEnded, RolloutStarted, ToolEnded
from runner.runtime.rollout import run_rollout
from runner.store.record import encode, to_record

EXACT = '[graders.answer]\nkind = "exact"\n'

TOOLS = """
[tools.find]
call = "./tools.py:find"
[graders.answer]
kind = "exact"
"""

TOOLS_PY = """
    def find(key: str) -> str:
        '''Find.'''
        return {"a": "4"}[key]
"""

AGENTS = """
    import math
    from runner import AgentWorkflowOutput
    from runner.records.message import tool_calls_of

    async def forgets(ctx):
        '''Drops its history between turns, and changes it afterwards.'''
        first = await ctx.chat([*ctx.prompt, {"role": "assistant", "content": "hm"}, {"role": "user", "content": "go"}])
        messages = [*ctx.prompt, {"role": "user", "content": "short"}]
        answer = await ctx.chat(messages)
        messages[0]["content"] = "rewritten"
        answer.message["content"] = "rewritten"

    async def samples(ctx):
        await ctx.chat(ctx.prompt, temperature=0.5, top_k=7, stop="x", extra={"min_p": 0.1})
        await ctx.chat(ctx.prompt, tools=[], max_tokens=None)

    async def bad_sampling(ctx):
        await ctx.chat(ctx.prompt, **ctx.metadata["sampling"])

    async def edits(ctx):
        '''Edits everything it was given.'''
        ctx.prompt[0]["content"][0]["text"] = "edited"
        ctx.prompt.clear()
        ctx.metadata["tags"].append("edited")
        del ctx.metadata["ground_truth"]
        return [{"role": "assistant", "content": "4"}]

    async def reports(ctx):
        await ctx.chat(ctx.prompt)
        ctx.log_event("looked", at=3)
        return AgentWorkflowOutput(metrics={"steps": 2}, info={"path": ["a"]}, stop_reason="satisfied")

    async def odd(ctx):
        odd = {"nan": math.nan, "set": {1}, "half": "\\ud800", "object": object(), "bytes": b"\\xff"}
        content = odd[ctx.metadata["odd"]]
        return [*ctx.prompt, {"role": "assistant", "content": "4", "extra": content}]

    async def cycle(ctx):
        message = {"role": "assistant", "content": "4"}
        message["self"] = message
        return [*ctx.prompt, message]

    async def statuses(ctx):
        answer = await ctx.chat(ctx.prompt)
        answers = await ctx.call_tools(tool_calls_of(answer.message))
        roles = [each["role"] for each in answers]
        return AgentWorkflowOutput(info={"statuses": list(answers.statuses), "roles": roles})

    kept = []

    async def lets_run_on(ctx):
        import asyncio

        async def later():
            await asyncio.sleep(0.02)
            try:
                await ctx.chat(ctx.prompt)
            except Exception as error:
                kept.append(str(error))

        kept.append(asyncio.create_task(later()))
        await ctx.chat(ctx.prompt)
"""


@pytest.fixture
def agents(project: Any) -> Any:
    project.write("agent.py", AGENTS)
    project.write("tools.py", TOOLS_PY)
    return project


def agent(name: str) -> str:
    return f'agent = "./agent.py:{name}"'


def test_the_messages_are_complete_with_the_system_prompt(project: Any) -> None:
    outcome = project.play(workflow='system = "Be brief."')
    assert outcome.sample.messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": "4"},
    )


def test_an_edited_history_is_recorded_as_the_policy_saw_it(agents: Any) -> None:
    outcome = agents.play(EXACT, agents.says("1"), agents.says("4"), workflow=agent("forgets"))
    assert [message["content"] for message in outcome.sample.messages] == ["2+2?", "short", "4"]
    assert outcome.reward == 1.0
    assert [call["turn"] for call in outcome.sample.calls] == [1, 2]


def test_what_the_endpoint_gave_is_kept_untouched(project: Any) -> None:
    logprobs = {"content": [{"token": "4", "logprob": -0.25}]}
    said = project.says(
        "4",
        prompt_token_ids=[1, 2],
        token_ids=[3],
        logprobs=logprobs,
        reasoning="two and two",
        response_id="x-1",
        model="m",
        retries=2,
        latency=0.5,
        usage=Usage(2, 1, 0, 1),
        cost=0.125,
        extra={"weight_version": "7"},
    )
    outcome = project.play(EXACT, said)
    assert outcome.sample.calls == (
        {
            "turn": 1,
            "latency": 0.5,
            "finish_reason": "stop",
            "usage": {
                "input_tokens": 2,
                "output_tokens": 1,
                "total_tokens": 3,
                "reasoning_tokens": 0,
                "cached_tokens": 1,
            },
            "retries": 2,
            "model": "m",
            "id": "x-1",
            "reasoning": "two and two",
            "prompt_token_ids": [1, 2],
            "token_ids": [3],
            "logprobs": logprobs,
            "cost": 0.125,
            "extra": {"weight_version": "7"},
        },
    )
    assert outcome.sample.calls[0]["logprobs"] is logprobs
    assert outcome.cost == 0.125
    assert outcome.timing["model"] == 0.5


def test_an_endpoint_that_counts_nothing(project: Any) -> None:
    outcome = project.play(EXACT, project.says("4", usage=None))
    assert outcome.sample.calls[0]["usage"] is None
    assert outcome.usage == Usage()
    assert outcome.cost is None


def test_tool_spans_and_events(agents: Any) -> None:
    events: list[Any] = []
    calls = [("find", '{"key": "a"}'), ("find", '{"key": "b"}'), ("find", "{"), ("fnd", "{}")]
    outcome = agents.play(TOOLS, agents.says(None, *calls), agents.says("4"), events=events)
    spans = {span["tool_call_id"]: span for span in outcome.sample.tool_spans}
    assert [spans[f"c{n}"]["status"] for n in range(4)] == ["ok", "error", "bad_call", "bad_call"]
    assert spans["c1"]["where"].endswith("tools.py:4 in find")
    assert "KeyError" in spans["c1"]["message"]
    assert "detail" not in spans["c1"]
    assert "message" not in spans["c0"]
    assert all(span["turn"] == 1 for span in spans.values())
    ended = {event.call.id: event for event in events if isinstance(event, ToolEnded)}
    assert "Traceback" in ended["c1"].detail
    assert ended["c1"].where == spans["c1"]["where"]
    assert isinstance(events[0], RolloutStarted)
    assert isinstance(events[-1], RolloutEnded)
    assert (events[-1].status, events[-1].reward) == ("scored", 1.0)
    assert [event.turn for event in events if isinstance(event, ModelCalled)] == [1, 2]
    assert all(one.at <= other.at for one, other in pairwise(events))


def test_statuses_of_tool_calls(agents: Any) -> None:
    calls = [("find", '{"key": "a"}'), ("find", '{"key": "b"}'), ("find", "{")]
    outcome = agents.play(TOOLS, agents.says(None, *calls), workflow=agent("statuses"))
    assert outcome.sample.info == {"statuses": ["ok", "error", "bad_call"], "roles": ["tool"] * 3}


def test_the_timing_adds_up(project: Any) -> None:
    project.write(
        "graders.py",
        """
        import asyncio

        async def slow(ctx):
            await asyncio.sleep(0.05)
            return 1.0
        """,
    )
    toml = '[graders.slow]\nkind = "python"\ncall = "./graders.py:slow"\n'
    timing = project.play(toml, project.says("4")).timing
    assert timing["grade"] >= 0.05
    assert timing["total"] >= timing["grade"] + timing["model"] + timing["tool"]
    assert timing["total"] < 2
    assert timing["started"] > 1_700_000_000


def test_sampling_of_the_file_and_of_a_call(agents: Any) -> None:
    model = agents.Says([agents.says("4")])
    toml = TOOLS + "[sampling]\ntemperature = 1.0\nmax_tokens = 64\nextra = { min_p = 0.5, top_k = 1 }\n"
    assert agents.play(toml, model=model, workflow=agent("samples")).status == "scored"
    (_, tools, first), (_, none, second) = model.asked
    assert first == Sampling(0.5, max_tokens=64, stop=("x",), extra={"min_p": 0.1, "top_k": 7})
    assert second == Sampling(1.0, extra={"min_p": 0.5, "top_k": 1})
    assert (tools, none) == (["find"], [])


@pytest.mark.parametrize(
    "sampling",
    [
        {"temperature": "hot"},
        {"top_p": True},
        {"max_tokens": 1.5},
        {"seed": "a"},
        {"stop": 3},
        {"stop": [3]},
        {"extra": 3},
    ],
)
def test_sampling_of_the_wrong_kind(agents: Any, sampling: dict[str, Any]) -> None:
    outcome = agents.play(EXACT, agents.says("4"), workflow=agent("bad_sampling"), row=row(sampling=sampling))
    assert (outcome.status, outcome.stop_reason) == ("failed", "bad_sampling")
    assert next(iter(sampling)) in outcome.failure.message


def test_sampling_of_a_request(agents: Any) -> None:
    model = agents.Says([agents.says("4")])

    async def main() -> Any:
        plan = agents.build(EXACT + "[sampling]\ntemperature = 1.0\n")
        async with plan.open(model=model) as live:
            request = plan.request(agents.row(), 0)
            await run_rollout(live, replace(request, sampling={"temperature": 0.0, "ignore_eos": True}))
            return await run_rollout(live, replace(request, sampling={"temperature": "hot"}))

    outcome = asyncio.run(main())
    assert model.asked[0][2] == Sampling(0.0, extra={"ignore_eos": True})
    assert (outcome.status, outcome.stop_reason) == ("failed", "bad_sampling")


def test_seeds_per_attempt(agents: Any) -> None:
    async def seeds() -> list[int | None]:
        model = agents.Says([agents.says("4")])
        plan = agents.build(EXACT + '[sampling]\nseed = "per-attempt"\n')
        async with plan.open(model=model) as live:
            for attempt in (0, 1, 2, 0):
                await agents.rollout(live, attempt=attempt)
        return [how.seed for _, _, how in model.asked]

    first = asyncio.run(seeds())
    assert first == asyncio.run(seeds())
    assert first[0] == first[3]
    assert len(set(first)) == 3
    assert all(seed is not None and 0 <= seed < 2**31 for seed in first)
    assert first[:2] == [575451222, 1342445658], "seeds of recorded runs must not move"


def test_a_row_whose_name_is_half_a_character(project: Any) -> None:
    from runner.datasets.dataset import Row

    async def main() -> Any:
        plan = project.build(EXACT + '[sampling]\nseed = "per-attempt"\n')
        async with plan.open() as live:
            return await run_rollout(live, plan.request(Row(0, "r\ud800", row(), "d"), 0))

    outcome = asyncio.run(main())
    assert outcome.reward == 1.0
    assert json.loads(encode(to_record(outcome, {})))["repaired"] is True


def row(**more: Any) -> dict[str, Any]:
    return {"user_prompt": "2+2?", "ground_truth": "4", **more}


def test_what_a_workflow_edits_is_its_own(agents: Any) -> None:
    content = [{"type": "text", "text": "2+2?"}]
    data = {"messages": [{"role": "user", "content": content}], "ground_truth": "4", "tags": []}

    async def main() -> None:
        async with agents.open(EXACT, workflow=agent("edits")) as live:
            one = agents.row(data)
            for attempt in range(2):
                outcome = await run_rollout(live, live.plan.request(one, attempt))
                assert outcome.failure is None
                assert outcome.reward == 1.0
                assert outcome.request.prompt[0]["content"][0]["text"] == "2+2?"
        assert data["tags"] == []
        assert data["ground_truth"] == "4"

    asyncio.run(main())


def test_what_a_workflow_reports(agents: Any) -> None:
    events: list[Any] = []
    outcome = agents.play(EXACT, agents.says("4"), workflow=agent("reports"), events=events)
    assert (outcome.stop_reason, outcome.ended, outcome.reward) == ("satisfied", "satisfied", 1.0)
    assert outcome.sample.metrics == {"turns": 1, "steps": 2.0}
    assert outcome.sample.info == {"path": ["a"]}
    assert [(event.name, event.data) for event in events if isinstance(event, Logged)] == [("looked", {"at": 3})]
    assert to_record(outcome, {})["info"] == {"path": ["a"]}


@pytest.mark.parametrize("odd", ["nan", "set", "half", "object", "bytes"])
def test_what_json_cannot_hold_is_recorded_all_the_same(agents: Any, odd: str) -> None:
    outcome = agents.play(EXACT, agents.says("4"), workflow=agent("odd"), row=row(odd=odd))
    assert outcome.reward == 1.0
    line = encode(to_record(outcome, {"result": "a", "grade": "b"}))
    record = json.loads(line.decode("utf-8"), parse_constant=pytest.fail)
    assert record["messages"][1]["content"] == "4"
    assert record.get("repaired", False) is (odd != "set"), "a set is kept as a list"


def test_a_message_that_holds_itself_is_recorded_all_the_same(agents: Any) -> None:
    outcome = agents.play(EXACT, agents.says("4"), workflow=agent("cycle"))
    assert outcome.reward == 1.0
    record = json.loads(encode(to_record(outcome, {"result": "a", "grade": "b"})))
    assert record["repaired"] is True
    assert record["reward"] == 1.0


def test_what_runs_on_after_the_end_may_do_nothing_more(agents: Any) -> None:
    events: list[Any] = []

    async def main() -> None:
        plan = agents.build(EXACT, workflow=agent("lets_run_on"))
        async with plan.open(model=agents.Says([agents.says("4")])) as live:
            outcome = await agents.rollout(live, events=events)
            kept = plan.make_workflow.make(None)._function.__globals__["kept"]  # type: ignore[attr-defined]
            await kept[0]
            assert outcome.reward == 1.0
            assert "the rollout has ended" in kept[1]
            assert isinstance(events[-1], RolloutEnded)

    asyncio.run(main())
