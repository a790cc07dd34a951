"""One rollout's crash, hang, blocking code or huge answer is its own business; and what nothing can be graded by."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from runner.serve.dialects.single_sample import SingleSample

SAID, GRADED = ("completion", "success", None), ("grader", "success", 1.0)
FAILED = [("completion", "failure", None), ("grader", "failure", None)]

AGENT = """
    import asyncio, pathlib, time
    from runner.records.message import tool_calls_of
    from runner.workflows.workflow import AgentWorkflow

    class Agent(AgentWorkflow):
        async def run(self, ctx):
            how = ctx.metadata.get("how", "")
            if how == "crash":
                raise ValueError("boom")
            if how == "exit":
                raise SystemExit(3)
            if how == "cancel itself":
                raise asyncio.CancelledError
            if how == "cancel its task":
                asyncio.current_task().cancel()
                await asyncio.sleep(1)
            if how == "hang":
                await asyncio.sleep(60)
            if how == "block":
                time.sleep(0.3)
            if how == "wrong":
                return {"messages": []}
            messages = list(ctx.prompt)
            while True:
                turn = await ctx.chat(messages)
                messages.append(turn.message)
                if not turn.message.get("tool_calls"):
                    return messages
                messages += await ctx.call_tools(tool_calls_of(turn.message))

    class Broken(Agent):
        def __init__(self, *more):
            super().__init__(*more)
            if (pathlib.Path(__file__).parent / "broken").exists():  # it was fine when the server was started
                raise RuntimeError("its constructor raised")

    BLOCKED = []

    def blocks() -> str:
        BLOCKED.append(1)
        time.sleep(3)
        return "x"
"""
BLOCKS = '[tools.blocks]\ncall = "./agent.py:blocks"\ndescription = "x"\n[graders.answer]\nkind = "exact"\n'


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [
        ("crash", "failure", "ValueError: boom"),
        ("exit", "failure", "SystemExit"),
        ("cancel itself", "failure", "nobody cancelled the rollout"),
        ("cancel its task", "failure", "nobody cancelled the rollout"),
        ("wrong", "failure", "`run` returned dict"),
        ("block", "success", None),
    ],
)
def test_what_an_agent_does_is_reported_17(stage: Any, how: str, status: str, said: str | None) -> None:
    stage.write("agent.py", AGENT)

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(workflow='agent = "./agent.py:Agent"') as server:
            await server.start(controller.start_of("r", metadata={"how": how}))
            await server.start(controller.start_of("other"))
            await server.quiet()
            assert controller.told("other") == [SAID, GRADED]
            assert controller.told("r") == ([SAID, GRADED] if status == "success" else FAILED)
            assert await server.status("r") == status
            message = next(seen.body["err_message"] for seen in controller.acked if seen.rollout == "r")
            assert message is None if said is None else said in message

    stage.run(test)


def test_a_constructor_that_raises_18(stage: Any) -> None:
    stage.write("agent.py", AGENT)

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(workflow='agent = "./agent.py:Broken"') as server:
            stage.write("broken", "")
            await server.start(controller.start_of("r"))
            await server.quiet()
            assert controller.told("r") == FAILED
            body = controller.acked[0].body
            assert "its constructor raised" in body["err_message"] and body["err_category"] == "agent_error"

    stage.run(test)


def test_health_answers_while_others_misbehave_65(stage: Any) -> None:
    """Hanging agents, tools that hold their threads, answers beyond the limit: /health and a good rollout go on."""
    stage.write("agent.py", AGENT)

    async def chat(seen: Any) -> Any:
        if seen.rollout.startswith("huge"):
            return "x" * 20_000_000
        if seen.rollout.startswith("blocks"):
            return stage.calls("blocks")
        return "4"

    async def test() -> None:
        controller = await stage.controller(chat=chat)
        async with stage.serving(BLOCKS, workflow='agent = "./agent.py:Agent"') as server:
            for number in range(10):
                await server.start(controller.start_of(f"hang{number}", metadata={"how": "hang"}))
                await server.start(controller.start_of(f"blocks{number}"))
            await server.start(controller.start_of("huge"))
            slowest = 0.0
            for number in range(20):
                began = time.monotonic()
                assert (await server.ask("GET", "/health")).status == 200
                slowest = max(slowest, time.monotonic() - began)
                await server.start(controller.start_of(f"good{number}"))
                await controller.until(2, f"good{number}")
            assert slowest < 1.0, slowest  # a tool holds its thread for three seconds
            await controller.until(2, "huge")
            assert controller.told("huge") == FAILED
            huge = [seen.body for seen in controller.acked if seen.rollout == "huge"]
            assert "MiB" in huge[0]["err_message"] or "bytes" in huge[0]["err_message"]
            assert all(controller.told(f"good{number}") == [SAID, GRADED] for number in range(20))
            found = await server.cancel(all=True)
            assert list(found.values()) == ["cancelled_running"] * 20
            assert server.house.engine.load().held == 0

    stage.run(test)


@pytest.mark.parametrize("generation", [1, 3])
def test_a_long_conversation_96(stage: Any, generation: int) -> None:
    """20 MB in, 20 MB out: nothing is lost, and the event loop is never held for long."""

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving() as server:
            ask = [
                {"role": ("user", "assistant")[place % 2], "content": f"{place} " + "word " * 2000}
                for place in range(2001)
            ]
            key = "messages" if generation == 1 else "initial_messages"
            assert (await server.start(controller.start_of("r", generation, **{key: ask}))).status == 202
            await controller.until(1 if generation == 1 else 2, seconds=20)
            body = controller.acked[-1].body
            messages = body["final_messages"] if generation == 1 else body["sample"]["messages"]
            assert len(messages) == 2002 and messages[:-1] == ask

    stage.run(test)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"label": None}, ("success", "failure")),
        ({"label": None, "metadata": None}, ("success", "failure")),
        ({"grader_callback_url": None}, ("success",)),
        ({"grader_callback_url": ""}, ("success",)),
    ],
)
def test_nothing_to_grade_19_20(stage: Any, more: dict[str, Any], words: tuple[str, ...]) -> None:
    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving() as server:
            await server.start(controller.start_of("r", **more))
            await server.quiet()
            assert tuple(each[1] for each in controller.told("r")) == words
            if len(words) == 2:
                assert "label" in controller.acked[1].body["err_message"]

    stage.run(test)


def test_no_grader_19(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving("") as server:
            await server.start(controller.start_of("r"))
            await server.quiet()
            assert controller.told("r") == [SAID, ("grader", "failure", None)]
            assert controller.acked[1].body["err_message"].startswith("no grader configured: ")

    stage.run(test)


LENGTH = '[graders.any]\nkind = "python"\ncall = "./code.py:any_answer"\n'


@pytest.mark.parametrize("more", [{"label": ""}, {"label": None, "metadata": {}}])
def test_empty_is_present_37(stage: Any, more: dict[str, Any]) -> None:
    stage.write("code.py", "def any_answer(ctx):\n    return 0.5\n")

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(LENGTH) as server:
            await server.start(controller.start_of("r", **more))
            await server.quiet()
            assert controller.told("r") == [SAID, ("grader", "success", 0.5)]

    stage.run(test)


def test_no_messages_at_all_38(stage: Any) -> None:
    """Accepted; whether that is a prompt is for the model to say."""

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving() as server:
            assert (await server.start(controller.start_of("r", initial_messages=[]))).status == 202
            await server.quiet()
            assert controller.told("r") == [SAID, GRADED] and controller.chats[0].body["messages"] == []

    stage.run(test)


NESTED = """
    from runner.workflows.workflow import AgentWorkflow

    class Outer(AgentWorkflow):
        async def run(self, ctx):
            messages = list(ctx.prompt)
            first = await ctx.chat(messages)
            await Inner().run(ctx)
            ctx.log_event("after", place=1)
            second = await ctx.chat([*messages, first.message])
            return [*messages, first.message, second.message]

    class Inner(AgentWorkflow):
        async def run(self, ctx):
            await ctx.chat(list(ctx.prompt))
"""


def test_contexts_nested_98(stage: Any) -> None:
    """The inner use of a context does not end the outer one: each call goes to this rollout's own endpoint."""
    stage.write("agent.py", NESTED)

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(workflow='agent = "./agent.py:Outer"') as server:
            for name in ("a", "b"):
                await server.start(controller.start_of(name))
            await server.quiet()
            assert controller.told("a") == controller.told("b") == [SAID, GRADED]
            assert sorted(seen.rollout for seen in controller.chats) == ["a"] * 3 + ["b"] * 3

    stage.run(test)


class Broken(SingleSample):
    """A dialect with a bug of ours in it."""

    name = "single-sample"

    def __init__(self, *breaks: str) -> None:
        super().__init__()
        self._breaks = breaks

    def ended(self, start: Any, left: Any) -> Any:
        if "ended" in self._breaks or ("ended well" in self._breaks and left.status != "failed"):
            raise RuntimeError("a bug")
        return super().ended(start, left)

    def settled(self, start: Any, outcome: Any) -> Any:
        if "settled" in self._breaks:
            raise RuntimeError("a bug")
        return super().settled(start, outcome)


@pytest.mark.parametrize("breaks", ["ended", "ended well", "settled"])
def test_a_fault_of_our_own_ends_one_rollout(stage: Any, breaks: str, caplog: Any) -> None:
    """It is logged, it has a verdict, its place is free; told wherever it can be."""

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(serve="max_concurrent = 1\nmax_queue = 1") as server:
            body = controller.start_of("r")[1]
            await server.house.engine.start(Broken(breaks), body, json.dumps(body).encode())
            await server.start(controller.start_of("other"))
            await server.quiet()
            assert controller.told("other") == [SAID, GRADED]
            assert controller.told("r") == (FAILED if breaks == "ended well" else [])
            answer = (await server.ask("GET", "/rollout/r/status")).body
            assert answer["status"] == "failure" and "a fault of the server itself" in answer["err_message"]
        async with stage.serving() as server:
            assert server.house.recovered == 0

    stage.run(test)
    assert "a bug" in caplog.text
