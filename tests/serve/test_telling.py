"""What a server says while all goes well, and at its end."""

from __future__ import annotations

import asyncio
import logging
import re
from typing import Any

import pytest

from runner.cli.workers import unfinished_text


def test_a_line_now_and_then_says_what_was_done(stage: Any, caplog: Any) -> None:
    async def test() -> None:
        def chat(seen: Any) -> Any:
            return asyncio.sleep(60) if seen.rollout == "plays" else "5" if seen.rollout == "wrong" else "4"

        controller = await stage.controller(chat=chat)
        async with stage.serving(serve='[serve.log]\nsummary = "200ms"') as server:
            await asyncio.sleep(0.3)
            for name in ("right", "wrong", "plays", "bad"):
                await server.start(controller.start_of(name, **({"agent_timeout_sec": 0} if name == "bad" else {})))
            await controller.until(6)
            await asyncio.sleep(0.5)

    with caplog.at_level(logging.INFO, "runner.serve"):
        stage.run(test)
    lines = [record.getMessage() for record in caplog.records if record.name == "runner.serve.chores"]
    assert lines and all(re.match(r"in 0\.\d+ s: \d+ accepted, \d+ ended", line) for line in lines)  # silent when idle
    assert sum(int(re.findall(r"(\d+) accepted", line)[0]) for line in lines) == 4
    assert sum(int(number) for line in lines for number in re.findall(r"(\d+) scored", line)) == 2
    assert sum(int(number) for line in lines for number in re.findall(r"(\d+) failed", line)) == 1
    assert "now 1 play, 0 wait, 0 callbacks owed" in lines[-1] or len(lines) > 1


@pytest.mark.parametrize("asked", [True, False])
def test_a_line_for_each_rollout_where_it_is_asked_for(stage: Any, caplog: Any, asked: bool) -> None:
    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(serve=f"[serve.log]\nrollouts = {str(asked).lower()}") as server:
            await server.start(controller.start_of("r"))
            await server.start(controller.start_of("one", 1))
            await server.quiet()

    with caplog.at_level(logging.INFO, "runner.serve"):
        stage.run(test)
    lines = sorted(line for line in caplog.messages if line.startswith("rollout "))
    assert len(lines) == (2 if asked else 0)
    if asked:
        assert re.fullmatch(r"rollout one \(agent-loop\) scored: final_answer, reward 1, \d\.\d\d s", lines[0])
        assert re.fullmatch(r"rollout r \(single-sample\) scored: final_answer, reward 1, \d\.\d\d s", lines[1])


@pytest.mark.parametrize(
    ("cut", "left", "text"),
    [
        (0, 0, ""),
        (1, 0, "1 rollout could not be finished; it is reported as failed"),
        (4, 0, "4 rollouts could not be finished; they are reported as failed"),
        (1, 1, "1 rollout could not be finished; it goes on after the next start"),
        (3, 3, "3 rollouts could not be finished; they go on after the next start"),
        (
            3,
            1,
            "3 rollouts could not be finished; 2 are reported as failed, 1 is left and goes on after the next start",
        ),
    ],
)
def test_what_is_said_of_what_a_drain_cut_short(cut: int, left: int, text: str) -> None:
    assert unfinished_text(cut, left) == text


def test_a_drain_knows_what_it_left(stage: Any) -> None:
    """A verdict that the disk does not take: it has none when the process ends, and the next start takes it up."""

    async def test() -> None:
        controller = await stage.controller(chat=lambda seen: asyncio.sleep(60))
        async with stage.serving() as server:
            engine = server.house.engine
            for name in ("a", "b"):
                await server.start(controller.start_of(name))
                await server.becomes(name, "running")
            with stage.no_room():
                await engine.drain(0.05, settle=0.3)
                assert (engine.drained.cut, engine.drained.left) == (2, 2)
                await engine.aclose()
            assert (server.house.drained.cut, server.house.drained.left) == (2, 2)
        async with stage.serving(serve='on_restart = "fail"') as server:
            assert server.house.recovered == 2
            await server.quiet()
            assert controller.told("a") == [("completion", "failure", None), ("grader", "failure", None)]

    stage.run(test)


@pytest.mark.parametrize("enforced", [False, True])
def test_the_time_outs_of_a_multi_sample_start(stage: Any, enforced: bool) -> None:
    async def test() -> None:
        controller = await stage.controller(chat=lambda seen: asyncio.sleep(0.3, "4"))
        async with stage.serving(serve=f"enforce_deadlines = {str(enforced).lower()}") as server:
            await server.start(controller.start_of("a/b", 2, agent_timeout_sec=0.1))
            await server.quiet()
        assert [seen.body["status"] for seen in controller.acked] == ["failure" if enforced else "success"] * 2
        assert controller.acked[0].body["err_category"] == ("timeout" if enforced else None)

    stage.run(test)


def test_an_empty_id_is_none(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving() as server:
            reply = await server.start(controller.start_of("", 2))
            assert reply.status == 422 and reply.body["detail"][0]["loc"] == ["body", "rollout_id"]

    stage.run(test)
