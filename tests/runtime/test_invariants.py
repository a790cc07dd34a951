"""Whatever a model does, and whatever the limits: what an outcome says holds together."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.records.completion import Usage
from runner.records.failure import ContextOverflow, ModelGarbled, ModelRefused, ModelUnavailable
from runner.records.limits import LIMIT_REASONS
from runner.store.record import encode, from_record, to_record

TOML = """
[tools.add]
call = "./tools.py:add"
[tools.breaks]
call = "./tools.py:breaks"
[tools.lost]
call = "./tools.py:add"
inject = { a = "row.nothing" }
[graders.answer]
kind = "exact"
[graders.mine]
kind = "python"
call = "./tools.py:grade"
timeout = "1s"
[limits]
"""

TOOLS = """
    async def add(a: int, b: int) -> int:
        '''Add.'''
        return a + b

    async def breaks() -> int:
        '''Break.'''
        raise OSError("broken")

    async def grade(ctx):
        if "nan" in ctx.output:
            return float("nan")
        if "raise" in ctx.output:
            raise KeyError("raise")
        return 0.5
"""

CALLS = [
    ("add", '{"a": 2, "b": 2}'),
    ("add", '{"a": 2}'),
    ("add", "not json"),
    ("breaks", "{}"),
    ("nothing", "{}"),
    ("lost", '{"b": 1}'),
]

TEXTS = st.sampled_from(["4", "5", "", "nan", "raise"])
USAGES = st.none() | st.builds(Usage, st.integers(0, 40), st.integers(0, 40))
FINISHES = st.sampled_from([None, "stop", "length", "content_filter", "tool_calls"])
SAID = st.tuples(
    st.just("says"),
    TEXTS,
    st.lists(st.sampled_from(CALLS), max_size=3),
    FINISHES,
    USAGES,
    st.none() | st.floats(0.0, 0.2),
)
BROKE = st.tuples(
    st.just("raises"),
    st.sampled_from([ModelUnavailable, ModelRefused, ModelGarbled, ContextOverflow, KeyError, SystemExit]),
)
HANGS = st.tuples(st.just("hangs"))
ANSWERS = st.lists(st.one_of(SAID, SAID, SAID, BROKE, HANGS), min_size=1, max_size=5)
LIMITS = st.fixed_dictionaries(
    {"turns": st.integers(1, 4)},
    optional={
        "tool_calls": st.integers(0, 4),
        "total_tokens": st.integers(1, 120),
        "cost": st.sampled_from(['"0.1 USD"', '"0.3 USD"']),
        "malformed_calls": st.integers(1, 3),
        "on_limit": st.sampled_from(['"score"', '"ungraded"', "{ reward = -1.0 }"]),
    },
)


def answer(project: Any, made: tuple[Any, ...]) -> Any:
    async def hangs() -> Any:
        await asyncio.sleep(60)

    match made:
        case ("says", text, calls, finish, usage, cost):
            return project.says(text, *calls, finish=finish, usage=usage, cost=cost)
        case ("raises", kind):
            return kind("it broke")
        case _:
            return hangs


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(answers=ANSWERS, limits=LIMITS)
def test_the_outcome_holds_together(project: Any, answers: list[Any], limits: dict[str, Any]) -> None:
    project.write("tools.py", TOOLS)
    toml = TOML + 'time = "60ms"\n' + "".join(f"{key} = {value}\n" for key, value in limits.items())
    # `check` of the project's rollouts holds the reward, the failure and the usage against each other.
    outcome = project.play(toml, *(answer(project, made) for made in answers), workflow='system = "Add."')
    sample = outcome.sample

    assert sample.messages[:2] == ({"role": "system", "content": "Add."}, {"role": "user", "content": "2+2?"})
    assert sample.metrics["turns"] == len(sample.calls) <= limits["turns"] or outcome.stop_reason == "rollout_timeout"
    assert sum(message["role"] == "assistant" for message in sample.messages) == sum(
        "error" not in call for call in sample.calls
    )
    if outcome.status == "failed":
        assert outcome.failure.kind == outcome.stop_reason == outcome.ended
        assert outcome.failure.boundary != "grader"
        assert outcome.scores == {}
    if outcome.status == "ungraded":
        by_rule = limits.get("on_limit") == '"ungraded"' and outcome.ended in LIMIT_REASONS
        assert (outcome.failure is None) == by_rule
        assert by_rule or outcome.failure.boundary == "grader"
    if outcome.status == "scored":
        assert outcome.stop_reason == outcome.ended
        assert outcome.failure is None
        fixed = "reward" in str(limits.get("on_limit")) and outcome.ended in LIMIT_REASONS
        assert outcome.reward == -1.0 if fixed else 0.0 <= outcome.reward <= 1.0
    if any(call.get("error") for call in sample.calls) and outcome.ended != "context_overflow":
        assert outcome.status == "failed"

    record = json.loads(encode(to_record(outcome, {"result": "a", "grade": "b"})))
    again = from_record(record)
    assert (again.status, again.reward, again.usage) == (outcome.status, outcome.reward, outcome.usage)
    assert list(again.sample.messages) == list(sample.messages)
