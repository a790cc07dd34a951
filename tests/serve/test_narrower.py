"""What a restart with narrower settings, and a state file that is lost, do to rollouts that were accepted before."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import pytest


async def metrics(server: Any) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    return text


def counted(text: str, name: str, **labels: str) -> float:
    told = ",".join(f'{key}="{value}"' for key, value in labels.items())
    found = re.search(rf"^osmosis_rollout_{name}\{{{told}\}} (\S+)$", text, re.M)
    return float(found[1]) if found else 0.0


def test_a_start_that_is_not_allowed_any_more_fails_and_says_so(stage: Any, caplog: Any) -> None:
    """Its chat and its grader callback may not be called now; its completion callback may, and brings the news."""

    async def test() -> None:
        controller = await stage.controller(chat=lambda seen: asyncio.sleep(60))
        async with stage.serving() as server:
            assert (await server.start(controller.start_of("r"))).status == 202
            assert (await server.start(controller.start_of("one", 1))).status == 202
            await stage.until(lambda: len(controller.chats) == 2)
        only = f'allow_callbacks = ["{controller.url}/*/completion"]'
        async with stage.serving(serve=only) as server:
            assert server.house.recovered == 2
            await server.quiet()
            assert controller.told("r") == [("completion", "failure", None)]
            assert "allow_callbacks" in controller.acked[0].body["err_message"]
            status = (await server.ask("GET", "/rollout/r/status")).body
            assert (status["status"], status["undelivered"]) == ("failure", 1)
            assert (await server.ask("GET", "/rollout/one/status")).body["undelivered"] == 1
            assert (await server.ask("GET", "/health")).body["callbacks"]["abandoned"] == 2
            text = await metrics(server)
            assert counted(text, "callback_posts_total", channel="grader", result="abandoned") == 1
            assert counted(text, "rollouts_recovered_total", how="failed") == 2
        assert len(controller.chats) == 2  # nothing was played again
        async with stage.serving() as server:  # allowed again: what was given up goes out
            await server.quiet()
            assert controller.told("r") == [("completion", "failure", None), ("grader", "failure", None)]
            assert [seen.body["status"] for seen in controller.acked if seen.path.startswith("/v1")] == ["ERROR"]

    with caplog.at_level(logging.ERROR):
        stage.run(test)
    assert "callback grader of rollout r is given up: its URL is not among" in caplog.text


def test_what_was_owed_before_is_given_up_when_it_is_not_allowed_any_more(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller(ack=lambda seen: 500)
        async with stage.serving() as server:
            await server.start(controller.start_of("r"))
            await server.becomes("r", "success")
        controller.ack, before = lambda seen: 200, len(controller.callbacks)
        async with stage.serving(serve='allow_callbacks = ["https://elsewhere.example/*"]') as server:
            await server.quiet()
            assert (await server.ask("GET", "/rollout/r/status")).body["undelivered"] == 2
        assert len(controller.callbacks) == before

    stage.run(test)


@pytest.mark.parametrize("ack", [400, 200])
def test_what_was_given_up_is_forgotten_like_the_rest(stage: Any, ack: int) -> None:
    """`record_ttl` after it was given up; until then it is known, and goes out after a restart."""

    async def test() -> None:
        controller = await stage.controller(ack=lambda seen: ack)
        async with stage.serving(serve='record_ttl = "1s"\ncleanup_interval = "50ms"') as server:
            await server.start(controller.start_of("r"))
            await server.quiet()
            await asyncio.sleep(0.3)
            assert await server.status("r") == "success"
            await server.becomes("r", "unknown")
            assert await server.house.outbox.counts() == {"accepted": 0, "held": 0, "owed": 0, "abandoned": 0}

    stage.run(test)


def test_graded_again_and_played_again_are_told_apart(stage: Any) -> None:
    stage.write(
        "code.py",
        """
        import asyncio, pathlib

        async def grade(messages, ground_truth, metadata):
            while not pathlib.Path(__file__).with_name("go").exists():
                await asyncio.sleep(0.01)
            return 1.0
        """,
    )
    slowly = '[graders.slow]\nkind = "python"\ncall = "./code.py:grade"\n'

    async def test() -> None:
        def chat(seen: Any) -> Any:
            return "4" if seen.rollout.startswith("graded") else asyncio.sleep(60)

        controller = await stage.controller(chat=chat)
        async with stage.serving(slowly) as server:
            for name in ("graded", "played1", "played2"):
                await server.start(controller.start_of(name))
            await controller.until(1)
            await stage.until(lambda: len(controller.chats) == 3)
        (stage.folder / "go").touch()
        controller.chat = lambda seen: "4"
        async with stage.serving(slowly) as server:
            await server.quiet()
            text = await metrics(server)
            found = {how: counted(text, "rollouts_recovered_total", how=how) for how in ("replayed", "regraded")}
            assert found == {"replayed": 2, "regraded": 1}

    stage.run(test)


@pytest.mark.parametrize("generation", [1, 2, 3])
def test_both_header_names_go_with_every_chat_call(stage: Any, generation: int) -> None:
    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(serve='sample = "solver"') as server:
            await server.start(controller.start_of("r", generation))
            await server.quiet()
        sent = controller.chats[0].headers
        assert (sent["x-rollout-id"], sent["x-sample-id"]) == ("r", "solver")

    stage.run(test)


def test_a_state_file_that_is_gone_is_said_and_nobody_waits_for_ever(stage: Any, caplog: Any) -> None:
    """A full disk passes, a deleted file does not: the verdict is given up, and whoever looks is told."""

    async def test() -> None:
        go = asyncio.Event()

        async def chat(seen: Any) -> str:
            await go.wait()
            return "4"

        controller = await stage.controller(chat=chat)
        async with stage.serving() as server:
            await server.start(controller.start_of("r"))
            await stage.until(lambda: controller.chats)
            assert (await server.ask("GET", "/health")).status == 200
            stage.state.unlink()
            go.set()
            await stage.until(lambda: not server.house.engine.load().held)
            health = await server.ask("GET", "/health")
            assert (health.status, health.body["status"]) == (503, "failing")
            assert "was deleted or replaced" in health.body["problem"]
            assert (await server.start(controller.start_of("new"))).status == 503
            assert controller.callbacks == []  # what is not on disk is not told

    stage.run(test)
    assert caplog.text.count("no verdict can be stored any more") == 1
    assert "the verdict of r is lost" in caplog.text
