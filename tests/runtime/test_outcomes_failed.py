"""A rollout that had no fair chance failed, at the boundary where it broke, and never has a reward."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

import pytest

from runner.models.double import Double
from runner.models.double_faults import Fault
from runner.records.failure import ConfigFailure, Failure, ModelGarbled, ModelRefused, ModelUnavailable

EXACT = '[graders.answer]\nkind = "exact"\n'
AGENT = 'agent = "./agent.py:run"'


@pytest.mark.parametrize(
    ("error", "boundary", "kind"),
    [
        (ModelUnavailable("no route"), "model", "model_unavailable"),
        (ModelRefused("bad key"), "model", "model_refused"),
        (ModelGarbled("not JSON"), "model", "model_garbled"),
        (KeyError("choices"), "model", "model_crashed"),
        (SystemExit(2), "model", "model_crashed"),
        (asyncio.CancelledError(), "model", "model_crashed"),
    ],
)
def test_a_model_that_gives_no_answer(project: Any, error: BaseException, boundary: str, kind: str) -> None:
    outcome = project.play(EXACT, error)
    assert (outcome.status, outcome.stop_reason, outcome.failure.kind) == ("failed", kind, kind)
    assert outcome.failure.boundary == boundary
    assert outcome.sample.messages == ({"role": "user", "content": "2+2?"},)
    assert outcome.sample.calls[0]["error"]["kind"] == kind


OVER_HTTP = """
[workflow]
name = "test"
{workflow}
[model]
id = "double"
provider = "openai"
base_url = "BASE_URL"
timeout = "300ms"
retries = { attempts = 2, max_wait = "10ms" }
"""


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("hang", "model_unavailable"),
        ("reset", "model_unavailable"),
        ("cut", "model_unavailable"),
        ("429", "model_unavailable"),
        ("500", "model_unavailable"),
        ("503", "model_unavailable"),
        ("400", "model_refused"),
        ("401", "model_refused"),
        ("garbage", "model_garbled"),
        ("empty", "model_garbled"),
    ],
)
def test_a_model_server_that_misbehaves(project: Any, fault: str, kind: str) -> None:
    async def main() -> Any:
        async with Double(lambda asked: "4", faults=[Fault(fault, 1.0)]) as double:
            plan = project.build(EXACT, head=OVER_HTTP.replace("BASE_URL", double.base_url))
            async with plan.open() as live:
                return await project.rollout(live)

    outcome = asyncio.run(main())
    assert (outcome.status, outcome.stop_reason, outcome.failure.boundary) == ("failed", kind, "model")


def test_a_model_server_that_answers(project: Any) -> None:
    async def main() -> Any:
        async with Double(lambda asked: "4") as double:
            plan = project.build(EXACT, head=OVER_HTTP.replace("BASE_URL", double.base_url))
            async with plan.open() as live:
                return await project.rollout(live)

    assert asyncio.run(main()).reward == 1.0


# ── tools ─────────────────────────────────────────────────────────────────────

TOOL = """
[tools.find]
call = "./tools.py:find"
{more}
[graders.answer]
kind = "exact"
"""


def test_a_tool_that_says_the_rollout_cannot_go_on(project: Any) -> None:
    project.write(
        "tools.py",
        """
        from runner.records.failure import ToolError

        def find() -> str:
            raise ToolError("the index is gone")
        """,
    )
    outcome = project.play(TOOL.format(more=""), project.says(None, ("find", "{}")), project.says("4"))
    assert (outcome.status, outcome.stop_reason, outcome.failure.boundary) == ("failed", "tool_crashed", "tool")
    assert outcome.failure.where.endswith("tools.py:5 in find")
    assert "the index is gone" in outcome.failure.detail
    assert outcome.sample.tool_spans[0]["status"] == "error"


def test_a_row_that_a_tool_cannot_be_given(project: Any) -> None:
    project.write("tools.py", "def find(key: str) -> str:\n    return key\n")
    toml = TOOL.format(more='inject = { key = "row.key" }')
    outcome = project.play(toml, project.says(None, ("find", "{}")))
    assert (outcome.status, outcome.stop_reason, outcome.failure.boundary) == ("failed", "injection", "tool")


def test_a_swallowed_tool_error_still_failed(project: Any) -> None:
    project.write("tools.py", "def find(key: str) -> str:\n    return key\n")
    project.write(
        "agent.py",
        """
        from runner.records.message import tool_calls_of

        async def run(ctx):
            answer = await ctx.chat(ctx.prompt)
            try:
                await ctx.call_tools(tool_calls_of(answer.message))
            except Exception:
                pass
            return [*ctx.prompt, {"role": "assistant", "content": "4"}]
        """,
    )
    toml = TOOL.format(more='inject = { key = "row.key" }')
    outcome = project.play(toml, project.says(None, ("find", "{}")), workflow=AGENT)
    assert (outcome.status, outcome.stop_reason) == ("failed", "injection")


def test_a_tool_that_raises_is_an_answer(project: Any) -> None:
    project.write("tools.py", "def find() -> str:\n    raise OSError('busy')\n")
    outcome = project.play(TOOL.format(more=""), project.says(None, ("find", "{}")), project.says("4"))
    assert (outcome.status, outcome.reward) == ("scored", 1.0)


# ── resources ─────────────────────────────────────────────────────────────────

RESOURCES = """
    import asyncio
    import time
    from contextlib import asynccontextmanager, contextmanager

    closed = []

    def no_manager():
        return 3

    @asynccontextmanager
    async def broken():
        raise OSError("no such database")
        yield

    @asynccontextmanager
    async def cancels():
        raise asyncio.CancelledError
        yield

    @asynccontextmanager
    async def exits():
        raise SystemExit(1)
        yield

    @contextmanager
    def sync_broken():
        raise OSError("no such database")
        yield

    @asynccontextmanager
    async def hangs():
        await asyncio.sleep(60)
        yield

    @asynccontextmanager
    async def good(name="good"):
        yield name
        closed.append(name)

    @contextmanager
    def sync_good():
        yield "sync"
        closed.append("sync")

    @asynccontextmanager
    async def bad_close():
        yield 1
        raise OSError("cannot flush")

    @asynccontextmanager
    async def swallows():
        try:
            yield 1
        except BaseException:
            pass
"""


@pytest.fixture
def resources(project: Any) -> Any:
    project.write("res.py", RESOURCES)
    return project


def resource(name: str, scope: str, key: str = "db") -> str:
    return f'[resources.{key}]\nopen = "./res.py:{name}"\nscope = "{scope}"\n'


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_manager", "no context manager"),
        ("broken", "OSError: no such database"),
        ("sync_broken", "OSError: no such database"),
        ("cancels", "CancelledError"),
        ("exits", "SystemExit"),
    ],
)
def test_a_resource_of_the_rollout_that_cannot_be_opened(resources: Any, name: str, said: str) -> None:
    outcome = resources.play(EXACT + resource(name, "rollout"))
    assert (outcome.status, outcome.stop_reason, outcome.failure.boundary) == ("failed", "resource_failed", "tool")
    assert "'db'" in outcome.failure.message
    assert said in outcome.failure.message
    if "broken" in name:
        assert f"in {name}" in outcome.failure.where
        assert "res.py" in outcome.failure.where


def test_a_resource_that_hangs_while_it_opens(resources: Any) -> None:
    outcome = resources.play(EXACT + resource("hangs", "rollout") + '[limits]\ntime = "100ms"\n')
    assert (outcome.status, outcome.stop_reason) == ("failed", "resource_failed")
    assert "`[limits] time`" in outcome.failure.message


def test_a_resource_that_cannot_be_closed_changes_nothing(resources: Any) -> None:
    events: list[Any] = []
    toml = EXACT + resource("good", "rollout", "a") + resource("bad_close", "rollout", "b")
    outcome = resources.play(toml + resource("sync_good", "rollout", "c"), events=events)
    assert (outcome.status, outcome.reward) == ("scored", 1.0)
    told = [event for event in events if getattr(event, "name", "") == "resource_close_failed"]
    assert [event.data["resource"] for event in told] == ["b"]
    assert "cannot flush" in told[0].data["message"]


@pytest.mark.parametrize("name", ["no_manager", "broken", "sync_broken", "exits"])
def test_a_resource_of_the_run_that_cannot_be_opened(resources: Any, name: str) -> None:
    with pytest.raises(ConfigFailure, match="resource 'db' could not be opened"):
        resources.play(EXACT + resource(name, "run"))


def test_a_resource_of_the_run_that_cannot_be_closed(resources: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        outcome = resources.play(EXACT + resource("bad_close", "run"))
    assert outcome.status == "scored"
    assert "resource 'db' could not be closed: OSError: cannot flush" in caplog.text


def test_a_resource_of_the_run_cannot_hide_an_error(resources: Any) -> None:
    async def main() -> None:
        async with resources.open(EXACT + resource("swallows", "run")):
            raise ArithmeticError("ours")

    with pytest.raises(ArithmeticError):
        asyncio.run(main())


# ── workflows ─────────────────────────────────────────────────────────────────

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


@pytest.mark.parametrize("name", ["wraps", "groups", "swallows_the_model", "best_of", "tries_again"])
def test_a_models_failure_stays_the_models(agents: Any, name: str) -> None:
    outcome = agents.play(EXACT, ModelUnavailable("no route", where="http://x"), workflow=agent(name))
    if name == "best_of":  # nobody answered at all, and the code fell over that
        assert (outcome.status, outcome.failure.kind) == ("failed", "agent_error")
        return
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
