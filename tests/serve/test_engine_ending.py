"""How a rollout ends when it is not left alone: graded late, killed, cancelled, out of time, drained."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from runner.store.outbox import Accepted, Outbox

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
SLOWLY = '[graders.slow]\nkind = "python"\ncall = "./code.py:slow_grader"\n'
SAID, GRADED = ("completion", "success", None), ("grader", "success", 1.0)


def tool(name: str) -> str:
    return f'[tools.{name}]\ncall = "./code.py:{name}"\ndescription = "x"\n[graders.answer]\nkind = "exact"\n'


def slow(stage: Any) -> Path:
    stage.write("code.py", CODE)
    return Path(stage.folder)


async def never(seen: Any) -> str:
    await asyncio.sleep(60)
    return "4"


@pytest.mark.parametrize(("generation", "words"), [(1, 1), (2, 2), (3, 2)])
def test_a_life_never_goes_backwards(stage: Any, generation: int, words: int) -> None:
    """queued, running, grading, success; the agent's end is told while graders think, and the verdict agrees."""
    folder = slow(stage)

    async def test() -> None:
        go = asyncio.Event()

        async def chat(seen: Any) -> str:
            await go.wait()
            await asyncio.sleep(0.05)
            return "4"

        controller = await stage.controller(chat=chat)
        async with stage.serving(SLOWLY, "max_concurrent = 1") as server:
            for name in ("first", "r"):
                await server.start(controller.start_of(name, generation))
            seen: list[str] = []

            async def watch() -> None:
                while not seen or seen[-1] != "success":
                    word = await server.status("r")
                    if not seen or seen[-1] != word:
                        seen.append(word)
                    await asyncio.sleep(0.002)

            watching = asyncio.ensure_future(watch())
            await server.becomes("r", "queued")
            go.set()
            await server.becomes("first", "grading")
            if words == 2:
                await controller.until(1, "first" if generation == 3 else None)
                assert await server.status("first") == "grading"  # told before it is graded
            (folder / "go").touch()
            await server.becomes("first", "success")
            (folder / "go").unlink()
            await server.becomes("r", "grading")
            (folder / "go").touch()
            await watching
            assert seen == ["queued", "running", "grading", "success"]
            await server.quiet()
            assert len(controller.acked) == 2 * words

    stage.run(test)


def test_a_slow_completion_does_not_hold_up_grading_23(stage: Any) -> None:
    """And the grader's callback waits for it all the same."""
    folder = slow(stage)
    (folder / "go").touch()

    async def test() -> None:
        taken = asyncio.Event()

        async def ack(seen: Any) -> int:
            await taken.wait()
            return 200

        controller = await stage.controller(ack=ack)
        async with stage.serving(SLOWLY) as server:
            await server.start(controller.start_of("r"))
            await server.becomes("r", "success")
            assert [seen.channel for seen in controller.callbacks] == ["completion"]
            taken.set()
            await controller.until(2)
            assert controller.told("r") == [SAID, GRADED]

    stage.run(test)


@pytest.mark.parametrize("on_restart", ["run", "fail"])
def test_cut_off_in_grading_it_is_never_told_twice_13(stage: Any, on_restart: str) -> None:
    folder = slow(stage)

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(SLOWLY) as server:
            await server.start(controller.start_of("r"))
            await controller.until(1)
        assert controller.told("r") == [SAID]
        (folder / "go").touch()
        async with stage.serving(SLOWLY, f'on_restart = "{on_restart}"') as server:
            assert server.house.recovered == 1
            await controller.until(2)
            await server.quiet()
            if on_restart == "run":
                assert controller.told("r") == [SAID, GRADED] and await server.status("r") == "success"
            else:
                assert controller.told("r") == [SAID, ("grader", "failure", None)]
                assert controller.acked[-1].body["err_message"] == "server restarted"
                assert await server.status("r") == "failure"
        assert len(controller.chats) == 1 and len(controller.callbacks) == 2
        assert (folder / "graded").read_text() == ("xx" if on_restart == "run" else "x")

    stage.run(test)


@pytest.mark.parametrize("on_restart", ["run", "fail"])
def test_cut_off_while_it_plays(stage: Any, on_restart: str) -> None:
    async def test() -> None:
        controller = await stage.controller(chat=never)
        async with stage.serving(serve="max_concurrent = 1") as server:
            for name in ("running", "waiting"):
                assert (await server.start(controller.start_of(name))).status == 202
            await stage.until(lambda: controller.chats)
        controller.chat = lambda seen: "4"
        async with stage.serving(serve=f'on_restart = "{on_restart}"') as server:
            await server.quiet()
            word = {"run": "success", "fail": "failure"}[on_restart]
            for name in ("running", "waiting"):
                assert [(each[0], each[1]) for each in controller.told(name)] == [
                    ("completion", word),
                    ("grader", word),
                ]
                assert await server.status(name) == word

    stage.run(test)


WORKER = """
import asyncio, sys
from pathlib import Path
from contextlib import asynccontextmanager
from runner.build.plan import build
from runner.config.load import load
from runner.serve.house import Opening, open_house
from runner.serve.server import Serving, listen, run_worker
plan = build(load(Path(sys.argv[1])))
sockets = listen("127.0.0.1", 0)
def ready():
    sys.stdout.write(f"{sockets[0].getsockname()[1]}\\n")
    sys.stdout.flush()
asyncio.run(run_worker(lambda worker: open_house(plan, Opening(), worker), sockets, Serving(drain=1.0, ready=ready)))
"""


def test_a_killed_process_leaves_nobody_behind(stage: Any) -> None:
    """kill -9 with rollouts queued, playing, graded and told: each comes to one verdict."""
    folder = slow(stage)

    async def test() -> None:
        controller = await stage.controller(chat=lambda seen: never(seen) if seen.rollout.startswith("p") else "4")
        stage.plan(SLOWLY, "max_concurrent = 4")
        process = subprocess.Popen(  # noqa: ASYNC220 (it is only begun)
            [sys.executable, "-c", WORKER, str(folder / "workflow.toml")], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            line = await asyncio.to_thread(process.stdout.readline)
            server = stage.server(int(line))
            for name in ("g1", "g2", "p1", "p2", "q1", "q2"):
                assert (await server.start(controller.start_of(name))).status == 202
            await controller.until(2)
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        assert controller.told("g1") == controller.told("g2") == [SAID]
        controller.chat = lambda seen: "4"
        (folder / "go").touch()
        async with stage.serving(SLOWLY) as server:
            assert server.house.recovered == 6
            await server.quiet()
            for name in ("g1", "g2", "p1", "p2", "q1", "q2"):
                # The acknowledgement may have been lost with the process: then it is said again, word for word.
                assert list(dict.fromkeys(controller.told(name))) == [SAID, GRADED], name
                assert await server.status(name) == "success"
        bodies = {(seen.path, repr(seen.body)) for seen in controller.callbacks}
        assert len(bodies) == 12

    stage.run(test)


def test_a_state_file_that_fits_no_more(stage: Any) -> None:
    """A dialect nobody speaks, a body that is none, a template that asks for more: each gets a verdict."""

    async def test() -> None:
        controller = await stage.controller(chat=never)
        async with stage.serving() as server:
            assert (await server.start(controller.start_of("old"))).status == 202
            assert (await server.start(controller.start_of("fits", metadata={"level": 1}))).status == 202
        outbox = Outbox.open(stage.state)
        for name, dialect, body in (("strange", "telepathy", b"{}"), ("torn", "single-sample", b"{")):
            await outbox.accept(Accepted(name, name, dialect, (), body, time.time()))
        await outbox.aclose()
        controller.chat = lambda seen: "4"
        async with stage.serving(workflow='system = "level {{ row.level }}"') as server:
            assert server.house.recovered == 4
            await server.quiet()
            assert [await server.status(name) for name in ("strange", "torn", "old")] == ["failure"] * 3
            assert controller.told("old") == [("completion", "failure", None), ("grader", "failure", None)]
            assert all("level" in seen.body["err_message"] for seen in controller.acked if seen.rollout == "old")
            assert controller.told("fits") == [SAID, GRADED]
        async with stage.serving() as server:
            assert (server.house.recovered, server.house.owed) == (0, 0)

    stage.run(test)


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
            began = time.monotonic()
            assert await server.cancel(ids=["r", "nobody"]) == {"r": "cancelled_running", "nobody": "not_found"}
            assert time.monotonic() - began < 1.0
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
            began = time.monotonic()
            assert await server.cancel(prefix="r") == {"r": "cancelled_running"}
            assert time.monotonic() - began < 1.0
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
            began = time.monotonic()
            assert await server.cancel(all=True) == {"r": "cancelled_running"}
            assert time.monotonic() - began < 1.0
            assert await server.status("r") == "cancelled" and server.house.engine.load().running == 0
            assert (await server.start(controller.start_of("next"))).status == 202
            assert await server.house.drain(0.05) == 1
            await server.quiet()
            assert [each[1] for each in controller.told("next")] == ["failure", "failure"]
            assert controller.told("r") == []

    stage.run(test)


def test_queue_time_counts_and_deadlines_are_told_at_once_63_64(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller(chat=never)
        async with stage.serving(serve="max_concurrent = 1") as server:
            await server.start(controller.start_of("hog"))
            began = time.monotonic()
            for name, seconds in (("soon", 0.3), ("now", 0), ("never", -1)):
                await server.start(controller.start_of(name, agent_timeout_sec=seconds))
            for name in ("now", "never", "soon"):
                await controller.until(2, name)
                assert [each[1] for each in controller.told(name)] == ["failure", "failure"]
            assert 0.3 < time.monotonic() - began < 1.5
            said = {seen.rollout: seen.body for seen in controller.acked if seen.channel == "completion"}
            assert said["soon"]["err_category"] == "timeout"
            text = said["soon"]["err_message"]
            assert text.startswith("workflow exceeded its 0.3s deadline (") and text.endswith("s of it spent queued)")
            assert said["now"]["err_message"].startswith("workflow exceeded its 0s deadline")
            assert await server.status("hog") == "running"
            load = server.house.engine.load()
            assert (load.running, load.queued) == (1, 0)
            await server.start(controller.start_of("plays", agent_timeout_sec=0.2))
            await server.cancel(ids=["hog"])
            await controller.until(2, "plays")

    stage.run(test)


def test_a_deadline_goes_on_while_the_server_is_away_64(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller(chat=never)
        async with stage.serving() as server:
            await server.start(controller.start_of("r", agent_timeout_sec=0.2))
        await asyncio.sleep(0.2)
        async with stage.serving() as server:
            await controller.until(2, seconds=1.5)
            assert controller.acked[0].body["err_category"] == "timeout" and len(controller.chats) <= 1

    stage.run(test)


def test_draining_14(stage: Any) -> None:
    """Those that end in time end well; the others are told why; whoever comes now is sent away."""

    async def test() -> None:
        async def chat(seen: Any) -> str:
            await asyncio.sleep(0.3 if seen.rollout == "quick" else 30)
            return "4"

        controller = await stage.controller(chat=chat)
        async with stage.serving(serve="max_concurrent = 2") as server:
            for name in ("quick", "slow", "queued", "late"):
                await server.start(controller.start_of(name))
            await stage.until(lambda: len(controller.chats) == 2)
            draining = asyncio.ensure_future(server.house.drain(0.8))
            await asyncio.sleep(0.05)
            refused = await server.start(controller.start_of("new"))
            assert refused.status == 503 and int(refused.headers["retry-after"]) > 0
            health = (await server.ask("GET", "/health")).body
            assert health["status"] == "draining"
            assert await server.status("slow") == "running"
            assert await draining == 3
            assert controller.told("quick") == [SAID, GRADED]
            for name in ("slow", "queued", "late"):
                assert controller.told(name) == [("completion", "failure", None), ("grader", "failure", None)]
                assert await server.status(name) == "failure"
                messages = {seen.body["err_message"] for seen in controller.acked if seen.rollout == name}
                assert messages == {"server shutting down"}
        async with stage.serving() as server:
            assert (server.house.recovered, server.house.owed) == (0, 0)

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


def test_an_agents_end_that_the_disk_does_not_take(stage: Any) -> None:
    """It is told with the grade, in its order."""
    folder = slow(stage)

    async def test() -> None:
        go = asyncio.Event()

        async def chat(seen: Any) -> str:
            await go.wait()
            return "4"

        controller = await stage.controller(chat=chat)
        async with stage.serving(SLOWLY) as server:
            await server.start(controller.start_of("r"))
            await stage.until(lambda: controller.chats)
            with stage.no_room():
                go.set()
                await server.becomes("r", "grading")
                await asyncio.sleep(0.2)
            assert not controller.callbacks
            (folder / "go").touch()
            await server.quiet()
            assert controller.told("r") == [SAID, GRADED]

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
            slowest = 0.0
            began = time.monotonic()
            while not cancelling.done():
                asked = time.monotonic()
                assert (await server.ask("GET", "/health")).status == 200
                slowest = max(slowest, time.monotonic() - asked)
            found = await cancelling
            assert time.monotonic() - began < 2.0 and slowest < 0.5, slowest
            assert sorted(found.values()) == ["cancelled_queued"] * 1000 + ["cancelled_running"] * 500
            await server.quiet()
            assert len(controller.chats) == 500  # none of those that waited got the place of another

    stage.run(test)
