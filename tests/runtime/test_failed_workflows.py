"""The agent's own code: how it can break, and whose fault it is."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

from runner.records.failure import Failure, ModelUnavailable

EXACT = '[graders.answer]\nkind = "exact"\n'


AGENTS = """
    import asyncio
    import time

    from runner import AgentWorkflowOutput

    class Home(Exception):
        pass

    class Unspeakable(Exception):
        def __str__(self):
            raise ValueError("no words")

    async def raises(ctx):
        await ctx.chat(ctx.prompt)
        return {}["answer"]

    async def unspeakable(ctx):
        raise Unspeakable

    async def raises_base(ctx):
        raise type("Odd", (BaseException,), {})("odd")

    async def exits(ctx):
        raise SystemExit(1)

    async def cancels(ctx):
        raise asyncio.CancelledError

    async def cancels_itself(ctx):
        asyncio.current_task().cancel()
        await asyncio.sleep(1)

    async def a_number(ctx):
        return 3

    async def a_text(ctx):
        return "4"

    async def no_role(ctx):
        return [*ctx.prompt, {"content": "4"}]

    async def no_message(ctx):
        return [*ctx.prompt, "4"]

    async def bad_metric(ctx):
        output = AgentWorkflowOutput(metrics={"a": 1.0})
        output.metrics["a"] = float("nan")
        return output

    async def too_slow(ctx):
        await asyncio.sleep(60)

    async def blocks(ctx):
        time.sleep(0.3)
        return [*ctx.prompt, {"role": "assistant", "content": "4"}]

    async def swallows(ctx):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return [*ctx.prompt, {"role": "assistant", "content": "4"}]

    async def transforms(ctx):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise KeyError("answer")

    async def swallows_for_ever(ctx):
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                pass

    async def asks_for_ever(ctx):
        while True:
            try:
                await asyncio.sleep(0.01)
                await ctx.chat(ctx.prompt)
            except Exception:
                pass

    async def wraps(ctx):
        try:
            await ctx.chat(ctx.prompt)
        except Exception as error:
            raise Home("could not ask") from error

    async def hides(ctx):
        try:
            await ctx.chat(ctx.prompt)
        except Exception:
            raise Home("could not ask")

    async def insists(ctx):
        while True:
            try:
                return await ctx.chat(ctx.prompt)
            except Exception as error:
                if getattr(error, "kind", "") == "max_turns":
                    raise

    async def falls_over(ctx):
        answer = None
        try:
            answer = await ctx.chat(ctx.prompt)
        except Exception:
            pass
        return [*ctx.prompt, answer.message]

    async def groups(ctx):
        async with asyncio.TaskGroup() as group:
            for _ in range(3):
                group.create_task(ctx.chat(ctx.prompt))

    async def own_bug_in_a_group(ctx):
        async def bug():
            raise KeyError("mine")
        async with asyncio.TaskGroup() as group:
            group.create_task(bug())

    async def swallows_the_model(ctx):
        try:
            await ctx.chat(ctx.prompt)
        except Exception:
            return [*ctx.prompt, {"role": "assistant", "content": "4"}]

    async def tries_again(ctx):
        for _ in range(3):
            try:
                await ctx.chat(ctx.prompt)
            except Exception:
                pass

    async def best_of(ctx):
        got = await asyncio.gather(*(ctx.chat(ctx.prompt) for _ in range(3)), return_exceptions=True)
        best = [each for each in got if not isinstance(each, Exception)]
        return [*ctx.prompt, best[0].message]

    async def bad_sampling(ctx):
        await ctx.chat(ctx.prompt, temperature="warm")
"""


@pytest.fixture
def agents(project: Any) -> Any:
    project.write("agent.py", AGENTS)
    return project


def agent(name: str) -> str:
    return f'agent = "./agent.py:{name}"'


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("raises", "agent_error", "KeyError: 'answer'"),
        ("unspeakable", "agent_error", "its message raised ValueError"),
        ("raises_base", "agent_error", "Odd: odd"),
        ("exits", "agent_error", "SystemExit"),
        ("cancels", "agent_error", "nobody cancelled"),
        ("cancels_itself", "agent_error", "nobody cancelled"),
        ("a_number", "bad_return", "int"),
        ("a_text", "bad_return", "str"),
        ("no_role", "bad_return", "message 1"),
        ("no_message", "bad_return", "message 1"),
        ("bad_metric", "bad_return", "'a'"),
        ("own_bug_in_a_group", "agent_error", "ExceptionGroup"),
        ("bad_sampling", "bad_sampling", "`temperature`"),
    ],
)
def test_a_workflow_that_breaks(agents: Any, name: str, kind: str, said: str) -> None:
    outcome = agents.play(EXACT, agents.says("4"), workflow=agent(name))
    assert (outcome.status, outcome.stop_reason, outcome.failure.boundary) == ("failed", kind, "workflow")
    assert said in outcome.failure.message


def test_the_line_that_broke_is_named(agents: Any) -> None:
    failure = agents.play(EXACT, agents.says("4"), workflow=agent("raises")).failure
    line = AGENTS.split("\n").index('        return {}["answer"]') + 1
    assert failure.where.endswith(f"agent.py:{line} in raises")
    assert "Traceback" in failure.detail
    assert 'return {}["answer"]' in failure.detail


@pytest.mark.parametrize("name", ["too_slow", "blocks", "swallows", "transforms", "asks_for_ever"])
def test_a_rollout_that_is_late_failed(agents: Any, name: str) -> None:
    started = time.monotonic()
    toml = EXACT + '[limits]\ntime = "100ms"\nturns = 1000000\n'
    outcome = agents.play(toml, agents.says("4"), workflow=agent(name))
    assert time.monotonic() - started < 5
    assert (outcome.status, outcome.stop_reason, outcome.failure.boundary) == ("failed", "rollout_timeout", "workflow")
    assert "0.1 s" in outcome.failure.message


def test_a_rollout_that_swallows_every_cancellation_is_ended_all_the_same(agents: Any) -> None:
    outcome = agents.play(EXACT + '[limits]\ntime = "100ms"\n', workflow=agent("swallows_for_ever"))
    assert (outcome.status, outcome.stop_reason) == ("failed", "rollout_timeout")


@pytest.mark.parametrize(
    "name", ["wraps", "hides", "groups", "swallows_the_model", "best_of", "tries_again", "insists", "falls_over"]
)
def test_a_models_failure_stays_the_models(agents: Any, name: str) -> None:
    outcome = agents.play(EXACT, ModelUnavailable("no route", where="http://x"), workflow=agent(name))
    assert (outcome.status, outcome.stop_reason) == ("failed", "model_unavailable")
    assert outcome.failure.boundary == "model"
    assert (outcome.failure.message, outcome.failure.where) == ("no route", "http://x")


def test_a_wrapped_failure_keeps_the_whole_traceback(agents: Any) -> None:
    failure = agents.play(EXACT, ModelUnavailable("no route"), workflow=agent("wraps")).failure
    assert isinstance(failure, Failure)
    assert "Home: could not ask" in failure.detail


def test_a_failure_that_was_mended_is_none(agents: Any) -> None:
    answers = [agents.says("1"), ModelUnavailable("no route"), agents.says("4")]
    assert agents.play(EXACT, *answers, workflow=agent("tries_again")).reward == 1.0
    assert agents.play(EXACT, *answers[::-1], workflow=agent("tries_again")).reward == 0.0
    assert agents.play(EXACT, *answers, workflow=agent("best_of")).status == "scored"
    assert agents.play(EXACT, *answers[:2], workflow=agent("best_of")).status == "scored"
    assert agents.play(EXACT, *answers[:2], workflow=agent("tries_again")).status == "failed"


def test_limits_of_a_request_that_cannot_be(project: Any) -> None:
    from dataclasses import replace

    from runner.runtime.rollout import run_rollout

    async def main(limits: dict[str, Any]) -> Any:
        async with project.open() as live:
            request = live.plan.request(project.row(), 0)
            return await run_rollout(live, replace(request, limits=limits))

    for limits in ({"turn": 3}, {"turns": "many"}, {"turns": -1}, {"time": float("nan")}, {"on_limit": "never"}):
        outcome = asyncio.run(main(limits))
        assert (outcome.status, outcome.stop_reason) == ("failed", "bad_limits")
        assert outcome.failure is not None
        assert outcome.failure.boundary == "controller"
    assert asyncio.run(main({"turns": 1, "time": 5, "cost": None})).status == "scored"
