"""Cancelled wherever it is: over within a second, its place free, its processes gone, and nothing more said of it."""

from __future__ import annotations

import asyncio
import operator
from pathlib import Path
from typing import Any

import pytest

from runner.serve.engine import Selector

CODE = """
    import asyncio, os, pathlib, subprocess, threading, time

    HERE = pathlib.Path(__file__).parent

    async def slow_grader(messages, ground_truth, metadata):
        with (HERE / "graded").open("a") as out:
            out.write("x")
        while not (HERE / "go").exists():
            await asyncio.sleep(0.01)
        return 1.0

    def blocking_grader(messages, ground_truth, metadata):
        time.sleep(3)
        return 1.0

    async def stubborn_grader(messages, ground_truth, metadata):
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return 1.0

    async def waits() -> str:
        await asyncio.sleep(30)

    def blocks() -> str:
        time.sleep(3)
        return "x"

    def runs() -> str:
        return subprocess.run(["sh", "-c", f"echo $$ >> {HERE}/pids; sleep 30 & echo $! >> {HERE}/pids; wait"]).stdout

    async def spawns() -> str:
        process = await asyncio.create_subprocess_exec("sh", "-c", f"echo $$ >> {HERE}/pids; sleep 30; true")
        await process.wait()

    async def tidies() -> str:
        process = await asyncio.create_subprocess_exec("sh", "-c", f"echo $$ >> {HERE}/pids; exec sleep 30")
        try:
            await process.wait()
        finally:
            process.kill()
            await process.wait()
"""


SAID, GRADED = ("completion", "success", None), ("grader", "success", 1.0)


def tool(name: str) -> str:
    return f'[tools.{name}]\ncall = "./code.py:{name}"\ndescription = "x"\n[graders.answer]\nkind = "exact"\n'


def slow(stage: Any) -> Path:
    stage.write("code.py", CODE)
    return Path(stage.folder)


async def never(seen: Any) -> str:
    await asyncio.sleep(60)
    return "4"


async def gone(folder: Path, pids: int) -> bool:
    """Whether the processes that a tool started are no more."""
    found = [int(line) for line in (folder / "pids").read_text().split()]
    assert len(found) == pids
    for _ in range(40):
        if not any(_lives(pid) for pid in found):
            return True
        await asyncio.sleep(0.01)
    return False


def _lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


PLACES: dict[str, tuple[str, int]] = {
    "waits": ("waits", 0),
    "blocks": ("blocks", 0),
    "runs": ("runs", 2),
    "spawns": ("spawns", 1),
    "tidies": ("tidies", 1),
    "model": ("waits", 0),
}


@pytest.mark.parametrize("place", PLACES)
def test_cancelled_while_it_runs_16(stage: Any, place: str) -> None:
    """In a model call, in tools of each kind: over within a second, its slot free, its processes gone, no callback."""
    folder = slow(stage)
    name, pids = PLACES[place]

    async def test() -> None:
        controller = await stage.controller(chat=never if place == "model" else stage.tool_first(name))
        async with stage.serving(tool(name), "max_concurrent = 1\nmax_queue = 0") as server:
            assert (await server.start(controller.start_of("r"))).status == 202
            await stage.until(lambda: controller.chats)
            if pids:
                await stage.until(
                    lambda: (folder / "pids").exists() and len((folder / "pids").read_text().split()) == pids
                )
            else:
                await asyncio.sleep(0.1)
            assert await server.cancel(ids=["r", "nobody"]) == {"r": "cancelled_running", "nobody": "not_found"}
            assert await server.status("r") == "cancelled"
            controller.chat = lambda seen: "4"
            assert (await server.start(controller.start_of("next"))).status == 202
            await server.becomes("next", "success")
            assert not pids or await gone(folder, pids)
            await server.quiet()
            assert controller.told("r") == [] and len(controller.callbacks) == 2

    stage.run(test)


AGENT = """
    import asyncio
    import pathlib
    from runner.workflows.workflow import AgentWorkflow

    class Agent(AgentWorkflow):
        async def run(self, ctx):
            here = pathlib.Path(__file__).parent
            process = await asyncio.create_subprocess_exec("sh", "-c", f"echo $$ >> {here}/pids; sleep 30; true")
            await process.wait()
"""


@pytest.mark.parametrize("how", ["cancelled", "out of time"])
def test_what_an_agent_has_started_ends_with_it(stage: Any, how: str) -> None:
    stage.write("agent.py", AGENT)

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(workflow='agent = "./agent.py:Agent"') as server:
            seconds = 30 if how == "cancelled" else 0.3
            await server.start(controller.start_of("r", agent_timeout_sec=seconds))
            await stage.until(lambda: (stage.folder / "pids").exists() and (stage.folder / "pids").read_text())
            if how == "cancelled":
                await server.cancel(ids=["r"])
            await stage.until(lambda: server.house.engine.load().held == 0)
            assert await gone(stage.folder, 1)

    stage.run(test)


@pytest.mark.parametrize(
    "selector", [{"ids": ["a1", "a2", "b1"]}, {"prefix": "a"}, {"all": True}, {"ids": []}, {"prefix": ""}]
)
def test_whom_a_cancel_is_for_89(stage: Any, selector: dict[str, Any]) -> None:
    async def test() -> None:
        controller = await stage.controller(chat=never)
        async with stage.serving(serve="max_concurrent = 1") as server:
            for name in ("a1", "a2", "b1", "b2"):
                await server.start(controller.start_of(name))
            named = {"ids": ["a1", "a2", "b1"], "prefix": ["a1", "a2"], "all": ["a1", "a2", "b1", "b2"]}
            meant = (
                named[next(iter(selector))]
                if selector not in ({"ids": []}, {"prefix": ""})
                else ([] if "ids" in selector else named["all"])
            )
            found = await server.cancel(**selector)
            assert found == {each: "cancelled_running" if each == "a1" else "cancelled_queued" for each in meant}
            for name in ("a1", "a2", "b1", "b2"):
                assert (await server.status(name) == "cancelled") == (name in meant)
            assert await server.cancel(ids=["a1"]) == (
                {"a1": "not_found"} if "a1" in meant else {"a1": "cancelled_running"}
            )

    stage.run(test)


def test_a_cancel_that_is_reported(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller(chat=never)
        async with stage.serving(serve="report_cancelled = true\nmax_concurrent = 1") as server:
            for name in ("running", "queued"):
                await server.start(controller.start_of(name))
            await server.cancel(all=True)
            await controller.until(4)
            for name in ("running", "queued"):
                assert controller.told(name) == [("completion", "failure", None), ("grader", "failure", None)]
                assert await server.status(name) == "cancelled"

    stage.run(test)


def test_two_attempts_with_one_name_are_cancelled_together(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller(chat=never)
        async with stage.serving(serve='dedupe = "run"\nmax_concurrent = 1') as server:
            for _ in range(2):
                assert (await server.start(controller.start_of("r"))).status == 202
            assert await server.cancel(ids=["r"]) == {"r": "cancelled_running"}
            assert server.house.engine.load().held == 0

    stage.run(test)


@pytest.mark.parametrize("grader", ["stubborn_grader", "blocking_grader", "slow_grader"])
def test_cancelled_while_it_is_graded(stage: Any, grader: str) -> None:
    """What was told stays told; a grader that swallows the cancellation changes nothing."""
    slow(stage)

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(f'[graders.g]\nkind = "python"\ncall = "./code.py:{grader}"\n') as server:
            await server.start(controller.start_of("r"))
            await controller.until(1)
            assert await server.cancel(prefix="r") == {"r": "cancelled_running"}
            assert await server.status("r") == "cancelled"
            await server.quiet()
            assert controller.told("r") == [SAID]
            assert (await server.cancel(ids=["r"])) == {"r": "not_found"}

    stage.run(test)


STUBBORN = """
    import asyncio
    from runner.workflows.workflow import AgentWorkflow

    class Stubborn(AgentWorkflow):
        async def run(self, ctx):
            end = asyncio.get_running_loop().time() + 20
            while asyncio.get_running_loop().time() < end:
                try:
                    await asyncio.sleep(1)
                except asyncio.CancelledError:
                    pass

    class Polite(AgentWorkflow):
        async def run(self, ctx):
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                return [{"role": "assistant", "content": "4"}]
"""


@pytest.mark.parametrize("agent", ["Stubborn", "Polite"])
def test_a_workflow_that_swallows_its_cancellation_15(stage: Any, agent: str) -> None:
    stage.write("agent.py", STUBBORN)
    workflow = f'agent = "./agent.py:{agent}"'

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(workflow=workflow, serve="max_concurrent = 1\nmax_queue = 0") as server:
            await server.start(controller.start_of("r"))
            await server.becomes("r", "running")
            assert await server.cancel(all=True) == {"r": "cancelled_running"}
            assert await server.status("r") == "cancelled" and server.house.engine.load().running == 0
            assert (await server.start(controller.start_of("next"))).status == 202
            assert await server.house.drain(0.05) == 1
            await server.quiet()
            assert [each[1] for each in controller.told("next")] == ["failure", "failure"]
            assert controller.told("r") == []

    stage.run(test)


@pytest.mark.parametrize("generation", [1, 3])
def test_started_again_after_a_cancel_it_is_played(stage: Any, generation: int) -> None:
    """Nothing was said of it, so there is no answer to join: whoever starts it again would wait for ever."""

    async def test() -> None:
        controller = await stage.controller(chat=never)
        async with stage.serving() as server:
            start = controller.start_of("r", generation)
            assert (await server.start(start)).status == 202
            await stage.until(lambda: controller.chats)
            await server.cancel(ids=["r"])
            controller.chat = lambda seen: "4"
            for _ in range(2):  # the second one is a repeated start like any other
                assert (await server.start(start)).status == 202
                await server.quiet()
            assert await server.status("r") == "success"
            assert len(controller.chats) == 2 and len(controller.acked) == (1 if generation == 1 else 2)

    stage.run(test)


def test_all_of_very_many_are_cancelled_in_time(stage: Any) -> None:
    """And others get the event loop meanwhile."""

    async def test() -> None:
        controller = await stage.controller(chat=never)
        async with stage.serving(serve="max_concurrent = 500") as server:
            starts = [controller.start_of(f"r{number}") for number in range(1500)]
            for first in range(0, 1500, 100):
                replies = await asyncio.gather(*(server.start(start) for start in starts[first : first + 100]))
                assert {reply.status for reply in replies} == {202}
            await stage.until(lambda: len(controller.chats) == 500, 10)
            cancelling = asyncio.ensure_future(server.cancel(all=True))
            running = [500]
            while running[-1] or not cancelling.done():
                await asyncio.sleep(0)
                running.append(server.house.engine.load().running)
            found = await cancelling
            assert max(map(operator.sub, running, running[1:])) <= 100  # in one turn of the loop
            assert sorted(found.values()) == ["cancelled_queued"] * 1000 + ["cancelled_running"] * 500
            await server.quiet()
            assert len(controller.chats) == 500  # none of those that waited got the place of another

    stage.run(test)


TIDIES_UP = """
    import asyncio
    import pathlib
    from runner.workflows.workflow import AgentWorkflow

    class Agent(AgentWorkflow):
        async def run(self, ctx):
            again = pathlib.Path(__file__).with_name("again")
            if not again.exists():
                try:
                    await asyncio.sleep(20)
                finally:
                    again.touch()
                    await asyncio.sleep(0.3)
            return [{"role": "assistant", "content": "4"}]
"""


@pytest.mark.parametrize("generation", [1, 3])
def test_started_again_while_it_is_still_being_cancelled(stage: Any, generation: int) -> None:
    """It is not given the answer of a rollout of which nothing will ever be said: it comes back, and is played."""
    stage.write("agent.py", TIDIES_UP)

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(workflow='agent = "./agent.py:Agent"') as server:
            start = controller.start_of("r", generation)
            await server.start(start)
            await server.becomes("r", "running")
            cancelling = asyncio.ensure_future(server.cancel(ids=["r"]))
            await stage.until((stage.folder / "again").exists)
            reply = await server.start(start)
            assert reply.status == (503 if generation == 1 else 429) and reply.headers["retry-after"] == "1"
            assert "cancelled" in reply.body["detail"]
            assert await cancelling == {"r": "cancelled_running"}
            assert (await server.start(start)).status == 202
            await server.quiet()
            assert await server.status("r") == "success"
            assert len(controller.acked) == (1 if generation == 1 else 2)

    stage.run(test)


TAKES_LEAVE = """
    import asyncio

    async def grade(messages, ground_truth, metadata):
        try:
            await asyncio.sleep(20)
        finally:
            await asyncio.sleep(0.2)
"""


def test_once_cancelled_nothing_is_said_of_its_agent_either(stage: Any) -> None:
    """Its grader takes longer to leave than the agent's end is kept back for: that end is no news any more."""
    stage.write("code.py", TAKES_LEAVE)

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving('[graders.g]\nkind = "python"\ncall = "./code.py:grade"\n') as server:
            start = controller.start_of("r")
            await server.start(start)
            while server.house.engine.phase("r") != "grading":  # noqa: ASYNC110 (not a turn of the loop is lost)
                await asyncio.sleep(0)
            assert await server.house.engine.cancel(Selector(ids=("r",))) == {"r": "cancelled_running"}
            await server.quiet()
            assert await server.status("r") == "cancelled" and controller.callbacks == []

    stage.run(test)
