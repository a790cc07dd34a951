"""A rollout that ended is scored, whatever made it end; limits are the policy's own doing."""

from __future__ import annotations

from typing import Any

import pytest

from runner.records.completion import Usage
from runner.records.failure import ContextOverflow

TOOLS = """
[tools.add]
call = "./tools.py:add"
[tools.finish]
call = "./tools.py:finish"
[graders.answer]
kind = "exact"
"""

TOOLS_PY = """
    def add(a: int, b: int) -> int:
        '''Add.'''
        return a + b

    def finish(answer: str) -> str:
        '''Finish.'''
        if answer == "boom":
            raise ValueError("not so")
        return answer
"""

CALL = ("add", '{"a": 2, "b": 2}')
BAD = ("add", '{"a": 2}')
STOP_BY_TOOL = 'stop_when = ["tool:finish"]'


@pytest.fixture
def tools(project: Any) -> Any:
    project.write("tools.py", TOOLS_PY)
    return project


def test_a_final_answer_is_scored(project: Any) -> None:
    outcome = project.play()
    assert (outcome.status, outcome.stop_reason, outcome.ended, outcome.reward) == (
        "scored",
        "final_answer",
        "final_answer",
        1.0,
    )
    assert project.play('[graders.answer]\nkind = "exact"', project.says("5")).reward == 0.0


@pytest.mark.parametrize(
    ("answer", "reason", "reward"),
    [
        ({"text": "4", "finish": "length"}, "max_tokens", 1.0),
        ({"text": "", "finish": "stop"}, "empty_answer", 0.0),
        ({"text": None, "finish": "stop"}, "empty_answer", 0.0),
        ({"text": "4", "finish": "content_filter"}, "content_filter", 1.0),
    ],
)
def test_how_the_endpoint_ended_an_answer(project: Any, answer: dict[str, Any], reason: str, reward: float) -> None:
    outcome = project.play('[graders.answer]\nkind = "exact"', project.says(answer["text"], finish=answer["finish"]))
    assert (outcome.status, outcome.stop_reason, outcome.reward) == ("scored", reason, reward)


@pytest.mark.parametrize(
    ("limits", "answer", "reason", "turns"),
    [
        ("turns = 3", {"calls": [CALL]}, "max_turns", 3),
        ("tool_calls = 2", {"calls": [CALL]}, "max_tool_calls", 3),
        ("tool_calls = 0", {"calls": [CALL]}, "max_tool_calls", 1),
        ("tool_calls = 3", {"calls": [CALL, CALL]}, "max_tool_calls", 2),
        ("total_tokens = 30", {"calls": [CALL]}, "max_total_tokens", 2),
        ("total_tokens = 31", {"calls": [CALL]}, "max_total_tokens", 3),
        ('cost = "0.25 USD"', {"calls": [CALL], "cost": 0.125}, "max_cost", 2),
        ("malformed_calls = 2", {"calls": [BAD]}, "malformed_calls", 2),
        ("malformed_calls = 2", {"calls": [BAD, ("nothing", "{}")]}, "malformed_calls", 1),
    ],
)
def test_a_limit_is_scored(tools: Any, limits: str, answer: dict[str, Any], reason: str, turns: int) -> None:
    said = tools.says(None, *answer["calls"], cost=answer.get("cost"))
    outcome = tools.play(TOOLS + f"[limits]\n{limits}\n", said)
    assert (outcome.status, outcome.stop_reason, outcome.ended) == ("scored", reason, reason)
    assert outcome.reward == 0.0
    assert outcome.scores["answer"].value == 0.0
    assert outcome.sample.metrics["turns"] == turns
    assert outcome.usage == Usage(10 * turns, 5 * turns)


def test_when_calls_do_not_all_fit_none_of_them_runs(tools: Any) -> None:
    outcome = tools.play(TOOLS + "[limits]\ntool_calls = 3\n", tools.says(None, CALL, CALL))
    assert len(outcome.sample.tool_spans) == 2
    assert [message["role"] for message in outcome.sample.messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]


def test_a_context_overflow_is_a_limit(tools: Any) -> None:
    outcome = tools.play(TOOLS, tools.says(None, CALL), ContextOverflow("4097 of 4096 tokens"))
    assert (outcome.status, outcome.stop_reason, outcome.reward) == ("scored", "context_overflow", 0.0)
    assert outcome.sample.calls[1]["error"]["kind"] == "context_overflow"


def test_a_finish_tool_ends_the_rollout_only_when_its_call_went_well(tools: Any) -> None:
    outcome = tools.play(
        TOOLS,
        tools.says(None, ("finish", '{"answer": 4}')),
        tools.says(None, ("finish", "not json")),
        tools.says(None, ("finish", '{"answer": "boom"}')),
        tools.says("4", ("finish", '{"answer": "4"}')),
        tools.says("never asked"),
        workflow=STOP_BY_TOOL,
    )
    assert (outcome.status, outcome.stop_reason, outcome.reward) == ("scored", "finish_tool", 1.0)
    assert [span["status"] for span in outcome.sample.tool_spans] == ["bad_call", "bad_call", "error", "ok"]
    assert outcome.sample.messages[-1]["role"] == "tool"


LIMITED = "[limits]\nturns = 1\non_limit = {}\n"


@pytest.mark.parametrize(
    ("rule", "status", "reward"),
    [
        ('"score"', "scored", 0.0),
        ('"ungraded"', "ungraded", None),
        ("{ reward = -0.5 }", "scored", -0.5),
        ("{ reward = 0 }", "scored", 0.0),
    ],
)
def test_on_limit(tools: Any, rule: str, status: str, reward: float | None) -> None:
    outcome = tools.play(TOOLS + LIMITED.format(rule), tools.says("4 is not last", CALL))
    assert (outcome.status, outcome.stop_reason, outcome.ended, outcome.reward) == (
        status,
        "max_turns",
        "max_turns",
        reward,
    )
    assert outcome.failure is None
    assert set(outcome.scores) == ({"answer"} if rule == '"score"' else set())


def test_on_limit_says_nothing_about_other_ends(project: Any) -> None:
    toml = '[graders.answer]\nkind = "exact"\n[limits]\non_limit = { reward = -1 }\n'
    assert project.play(toml).reward == 1.0
    assert project.play(toml, project.says("4", finish="length")).reward == -1.0


SWALLOWS = """
    import runner

    async def again(ctx):
        '''Asks until it is refused, and then some.'''
        refused = 0
        while refused < 50:
            try:
                await ctx.chat(ctx.prompt)
            except Exception:
                refused += 1
        return [*ctx.prompt, {"role": "assistant", "content": "4"}]

    async def raises(ctx):
        try:
            await again(ctx)
            await ctx.chat(ctx.prompt)
        except Exception as error:
            raise RuntimeError("gave up") from error

    async def never_mind(ctx):
        try:
            await again(ctx)
            await ctx.chat(ctx.prompt)
        except Exception:
            return {}["unrelated"]
"""


@pytest.mark.parametrize("agent", ["again", "raises", "never_mind"])
def test_a_workflow_that_swallows_a_limit_does_not_get_round_it(project: Any, agent: str) -> None:
    project.write("agent.py", SWALLOWS)
    model = project.Says([project.says("5")])
    toml = '[graders.answer]\nkind = "exact"\n[limits]\nturns = 2\non_limit = { reward = -1 }\n'
    outcome = project.play(toml, model=model, workflow=f'agent = "./agent.py:{agent}"')
    assert (outcome.status, outcome.stop_reason, outcome.reward) == ("scored", "max_turns", -1.0)
    assert len(model.asked) == 2


def test_a_limit_that_the_code_raises_itself_is_its_own_fault(project: Any) -> None:
    project.write(
        "agent.py",
        """
        from runner.records.failure import LimitReached

        async def run(ctx):
            raise LimitReached("enough", kind="max_turns")
        """,
    )
    outcome = project.play(workflow='agent = "./agent.py:run"')
    assert (outcome.status, outcome.stop_reason, outcome.failure.boundary) == ("failed", "agent_error", "workflow")


def test_a_limit_beside_a_fault_of_the_infrastructure_is_no_reward(project: Any) -> None:
    """One of two calls at once trips a limit, the other finds no model: the answer was never fairly asked for."""
    from runner.records.failure import ModelUnavailable

    project.write(
        "agent.py",
        """
        import asyncio

        async def run(ctx):
            got = await asyncio.gather(*(ctx.chat(ctx.prompt) for _ in range(2)), return_exceptions=True)
            raise got[0]
        """,
    )
    toml = '[graders.answer]\nkind = "exact"\n[limits]\nturns = 1\n'
    outcome = project.play(toml, ModelUnavailable("no route"), workflow='agent = "./agent.py:run"')
    assert (outcome.status, outcome.stop_reason) == ("failed", "model_unavailable")
