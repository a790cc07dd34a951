"""How a rollout ends when it is not left alone: graded late, killed, out of time, drained."""

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
    import asyncio, pathlib

    HERE = pathlib.Path(__file__).parent

    async def slow_grader(messages, ground_truth, metadata):
        with (HERE / "graded").open("a") as out:
            out.write("x")
        while not (HERE / "go").exists():
            await asyncio.sleep(0.01)
        return 1.0
"""


SLOWLY = '[graders.slow]\nkind = "python"\ncall = "./code.py:slow_grader"\n'


SAID, GRADED = ("completion", "success", None), ("grader", "success", 1.0)


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
from runner.serve.http.server import Serving, listen, run_worker
plan = build(load(Path(sys.argv[1])))
sockets = listen("127.0.0.1", 0)
def ready():
    sys.stdout.write(f"{sockets[0].getsockname()[1]}\\n")
    sys.stdout.flush()
asyncio.run(run_worker(lambda worker: open_house(plan, Opening()), sockets, Serving(drain=1.0, ready=ready)))
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
