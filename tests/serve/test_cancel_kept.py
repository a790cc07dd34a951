"""A cancel that was answered holds, whatever happens to the process, the disk, or the settings."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sqlite3
import subprocess
import sys
import time
from typing import Any

import pytest

from runner.serve.cancelling import Selector
from runner.serve.dialects.single_sample import SingleSample

AGENT = """
    import asyncio
    import pathlib
    from runner.workflows.workflow import AgentWorkflow

    HERE = pathlib.Path(__file__).parent

    class Agent(AgentWorkflow):
        async def run(self, ctx):
            with (HERE / "begun").open("a") as out:
                out.write("x")
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                (HERE / "leaving").touch()
                await asyncio.sleep(20)  # it takes its time
"""
GRADER = """
    import asyncio
    import pathlib

    async def grade(messages, ground_truth, metadata):
        try:
            await asyncio.sleep(20)
        finally:
            pathlib.Path(__file__).with_name("leaving").touch()
            await asyncio.sleep(20)
"""
SLOWLY = '[graders.slow]\nkind = "python"\ncall = "./agent.py:grade"\n'
WORKER = """
import asyncio, sys
from pathlib import Path
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


def rows(stage: Any, what: str) -> list[Any]:
    with sqlite3.connect(stage.state) as connection:
        found = list(connection.execute(what))
    connection.close()
    return found


async def metrics(server: Any) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    return text


@pytest.mark.parametrize("report", [False, True])
@pytest.mark.parametrize("where", ["agent", "grader"])
def test_killed_while_it_cancels_it_plays_nothing_again(stage: Any, where: str, report: bool) -> None:
    """kill -9 between the cancel and the verdict: the next start settles it as cancelled, and tells it if asked to."""
    stage.write("agent.py", AGENT if where == "agent" else GRADER)
    toml = SLOWLY if where == "grader" else '[graders.answer]\nkind = "exact"\n'
    file = {
        "toml": toml,
        "workflow": 'agent = "./agent.py:Agent"' if where == "agent" else "",
        "serve": f"report_cancelled = {str(report).lower()}",
    }

    async def test() -> None:
        controller = await stage.controller()
        stage.plan(**file)
        process = subprocess.Popen(  # noqa: ASYNC220 (it is only begun)
            [sys.executable, "-c", WORKER, str(stage.folder / "workflow.toml")], stdout=subprocess.PIPE, text=True
        )
        told = 1 if where == "grader" else 0
        try:
            assert process.stdout is not None
            server = stage.server(int(await asyncio.to_thread(process.stdout.readline)))
            assert (await server.start(controller.start_of("r"))).status == 202
            await (controller.until(1) if told else stage.until((stage.folder / "begun").exists))
            cancelling = asyncio.ensure_future(server.cancel(ids=["r"]))
            await stage.until((stage.folder / "leaving").exists)
            await asyncio.sleep(0.1)
            assert not cancelling.done()
        finally:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            cancelling.cancel()
            await asyncio.wait({cancelling})
        assert rows(stage, "SELECT phase FROM rollouts") == [(told,)]
        async with stage.serving(**file) as server:
            assert server.house.recovered == 1
            await server.quiet()
            assert await server.status("r") == "cancelled"
            assert re.search(r'recovered_total\{how="cancelled"\} 1(\.0)?$', await metrics(server), re.M)
            # What was told stays told, and may have to be said again; what is new is that it failed.
            said = [("completion", "success", None)] * told
            said += [(each, "failure", None) for each in ("completion", "grader")[told:]] if report else []
            assert list(dict.fromkeys(controller.told("r"))) == said
        assert (told == 0) == (stage.folder / "begun").exists() and len(controller.chats) == told
        assert rows(stage, "SELECT phase, status FROM rollouts") == [(2, "cancelled")]
        assert rows(stage, "SELECT * FROM cancels") == []

    stage.run(test)


def test_a_cancel_that_the_disk_does_not_take_is_not_answered_as_if(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller(chat=lambda seen: asyncio.sleep(60))
        async with stage.serving(serve="max_concurrent = 1") as server:
            for name in ("running", "queued"):
                await server.start(controller.start_of(name))
            await stage.until(lambda: controller.chats)
            with stage.no_room():
                reply = await server.ask("POST", "/rollout/cancel", {"all": True})
                assert reply.status == 503 and reply.headers["retry-after"] == "1"
                assert server.house.engine.load().running == 0  # it is stopped all the same
                problem = (await server.ask("GET", "/health")).body["problem"]
                assert "may not grow" in problem
            await server.quiet()
            assert await server.status("running") == await server.status("queued") == "cancelled"
            assert "problem" not in (await server.ask("GET", "/health")).body

    stage.run(test)


def test_a_verdict_that_comes_after_a_siblings_cancel_is_that_it_was_cancelled(stage: Any) -> None:
    """Written down by another worker while this one played on: nothing else is stored, or said, after that."""

    async def test() -> None:
        go = asyncio.Event()

        async def chat(seen: Any) -> str:
            await go.wait()
            return "4"

        controller = await stage.controller(chat=chat)
        async with stage.serving() as server:
            await server.start(controller.start_of("r"))
            await stage.until(lambda: controller.chats)
            outbox = server.house.outbox
            await outbox.cancel([known.attempt_id for known in await outbox.by_prefix("r")])
            go.set()
            await server.quiet()
            assert await server.status("r") == "cancelled" and controller.callbacks == []

    stage.run(test)


def test_started_again_after_a_cancel_in_grading_it_is_refused(stage: Any) -> None:
    """Its completion was told: joined, its controller would wait for ever; played again, it might be contradicted."""
    stage.write("agent.py", GRADER)

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(SLOWLY) as server:
            start = controller.start_of("r")
            await server.start(start)
            await controller.until(1)
            await server.cancel(ids=["r"])
            await server.quiet()
            reply = await server.start(start)
            assert reply.status == 409 and "cancelled while it was graded" in reply.body["detail"]
        async with stage.serving(SLOWLY) as server:  # and after a restart
            assert (await server.start(start)).status == 409
        assert len(controller.callbacks) == 1

    stage.run(test)


def test_reported_as_cancelled_it_is_joined_as_ever(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller(chat=lambda seen: asyncio.sleep(60))
        async with stage.serving(serve="report_cancelled = true") as server:
            start = controller.start_of("r", grader_callback_url=None)
            await server.start(start)
            await stage.until(lambda: controller.chats)
            await server.cancel(ids=["r"])
            await controller.until(1)
            assert (await server.start(start)).status == 202 and len(controller.chats) == 1

    stage.run(test)


def test_ten_thousand_are_cancelled_within_a_second(stage: Any) -> None:
    """Most of them wait; the answer names all of them, and is on disk by then."""

    async def test() -> None:
        controller = await stage.controller(chat=lambda seen: asyncio.sleep(60))
        async with stage.serving(serve="max_concurrent = 200\nmax_queue = 20000") as server:
            engine, dialect = server.house.engine, SingleSample()
            for first in range(0, 10_000, 500):
                bodies = [controller.start_of(f"r{number}")[1] for number in range(first, first + 500)]
                await asyncio.gather(*(engine.start(dialect, body, json.dumps(body).encode()) for body in bodies))
            await stage.until(lambda: len(controller.chats) == 200, 10)
            began = time.monotonic()
            found = await engine.cancel(Selector(everything=True))
            assert time.monotonic() - began < 2.0  # within one, where nobody else is at work
            assert len(found) == 10_000 and list(found.values()).count("cancelled_queued") == 9_800
            unsure = "SELECT count(*) FROM rollouts WHERE phase < 2 AND number NOT IN (SELECT number FROM cancels)"
            assert rows(stage, unsure) == [(0,)]
            await server.quiet(20)
            assert len(controller.chats) == 200

    stage.run(test)
