"""What 202 means: on disk, within capacity, and once, whatever the disk and the crowd do."""

from __future__ import annotations

import asyncio
import gc
import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from runner.serve.dialects.single_sample import SingleSample


def on_disk(path: Path) -> int:
    """How many rollouts somebody else finds in the file."""
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as connection:
        found = int(connection.execute("SELECT count(*) FROM rollouts").fetchone()[0])
    connection.close()
    return found


@pytest.mark.parametrize("generation", [1, 2, 3])
def test_accepted_means_on_disk(stage: Any, generation: int) -> None:
    async def test() -> None:
        never = asyncio.Event()
        controller = await stage.controller(chat=lambda seen: never.wait())
        async with stage.serving() as server:
            for number in range(5):
                reply = await server.start(controller.start_of(f"r{number}", generation))
                assert reply.status == 202
                assert on_disk(stage.state) == number + 1

    stage.run(test)


@pytest.mark.parametrize("generation", [1, 3])
def test_a_disk_that_takes_nothing(stage: Any, generation: int) -> None:
    """Refused as a whole, its place given back; the same start is taken as soon as the disk takes it."""

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(serve="max_concurrent = 2\nmax_queue = 0") as server:
            with stage.no_room():
                refused = [await server.start(controller.start_of("r", generation)) for _ in range(5)]
                assert [await server.status("r"), server.house.engine.load().held] == ["unknown", 0]
            assert [each.status for each in refused] == [503] * 5
            assert all(int(each.headers["retry-after"]) > 0 for each in refused)
            assert "cannot write down" in refused[0].body["detail"]
            assert not controller.chats and not controller.callbacks
            assert (await server.start(controller.start_of("r", generation))).status == 202
            await server.becomes("r", "success")
        assert on_disk(stage.state) == 1

    stage.run(test)


def test_a_leader_that_cannot_be_written_down_takes_its_followers_along_45(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving() as server:
            start = controller.start_of("r", 1)
            with stage.no_room():
                replies = await asyncio.gather(*(server.start(start) for _ in range(8)))
            assert {reply.status for reply in replies} == {503}
            replies = await asyncio.gather(*(server.start(start) for _ in range(8)))
            assert [reply.status for reply in replies] == [202] * 8
            await server.quiet()
            assert len(controller.chats) == len(controller.callbacks) == 1

    stage.run(test)


def test_who_hangs_up_before_the_answer_is_played_all_the_same(stage: Any, caplog: Any) -> None:
    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving() as server:
            engine = server.house.engine

            async def hang_up(name: str) -> None:
                body = controller.start_of(name)[1]
                asked = asyncio.ensure_future(engine.start(SingleSample(), body, json.dumps(body).encode()))
                await asyncio.sleep(0)
                asked.cancel()
                await asyncio.wait({asked})

            await hang_up("a")
            await server.becomes("a", "success")
            with stage.no_room():
                await hang_up("b")
                await stage.until(lambda: not engine.load().held)
            gc.collect()

    stage.run(test)
    assert "never retrieved" not in caplog.text


@pytest.mark.parametrize(("generation", "full"), [(1, 503), (2, 429), (3, 429)])
def test_a_burst_never_overshoots_69(stage: Any, generation: int, full: int) -> None:
    async def test() -> None:
        go = asyncio.Event()

        async def chat(seen: Any) -> str:
            await go.wait()
            return "4"

        controller = await stage.controller(chat=chat)
        async with stage.serving(serve="max_concurrent = 3\nmax_queue = 4") as server:
            burst = [controller.start_of(f"r{number}", generation) for number in range(40)]
            replies = await asyncio.gather(*(server.start(start) for start in burst))
            assert Counter(reply.status for reply in replies) == {202: 7, full: 33}
            load = server.house.engine.load()
            assert (load.running, load.queued, load.held) == (3, 4, 7)
            await stage.until(lambda: len(controller.chats) == 3)
            waits = [int(reply.headers["retry-after"]) for reply in replies if reply.status == full]
            assert all(1 <= wait <= 60 for wait in waits)
            health = (await server.ask("GET", "/health")).body
            assert health["concurrency"] == {"max_concurrent": 3, "queued": 4, "running": 3}
            assert health["active_rollouts"] == 7
            # Who is in already is joined, full or not.
            first = next(place for place, reply in enumerate(replies) if reply.status == 202)
            assert (await server.start(burst[first])).status == 202
            go.set()
            await server.quiet()
            assert len(controller.chats) == 7
            replies = await asyncio.gather(*(server.start(controller.start_of(f"n{n}", generation)) for n in range(7)))
            assert [reply.status for reply in replies] == [202] * 7
            await server.quiet()

    stage.run(test)


def test_a_slow_acknowledgement_holds_no_place_22(stage: Any) -> None:
    async def test() -> None:
        answered = asyncio.Event()

        async def ack(seen: Any) -> int:
            await answered.wait()
            return 200

        controller = await stage.controller(ack=ack)
        async with stage.serving(serve="max_concurrent = 1\nmax_queue = 0") as server:
            for number in range(5):
                async with asyncio.timeout(3):
                    while (await server.start(controller.start_of(f"r{number}"))).status != 202:  # noqa: ASYNC110
                        await asyncio.sleep(0.005)
                await server.becomes(f"r{number}", "success")
            load = server.house.engine.load()
            assert (load.running, load.held) == (0, 0) and not controller.acked
            answered.set()
            await controller.until(10)
            assert all(
                controller.told(f"r{n}") == [("completion", "success", None), ("grader", "success", 1.0)]
                for n in range(5)
            )

    stage.run(test)


@pytest.mark.parametrize("dedupe", ["join", "reject", "run"])
def test_a_repeated_start_44(stage: Any, dedupe: str) -> None:
    """While it is accepted, while it plays, when it has ended, and after a restart."""

    async def test() -> None:
        go = asyncio.Event()

        async def chat(seen: Any) -> str:
            await go.wait()
            return "4"

        controller = await stage.controller(chat=chat)
        again = {"join": 202, "reject": 409, "run": 202}[dedupe]
        serve = f'dedupe = "{dedupe}"'
        async with stage.serving(serve=serve) as server:
            start = controller.start_of("r")
            together = await asyncio.gather(*(server.start(start) for _ in range(6)))
            assert sorted(reply.status for reply in together) == [202, *[again] * 5]
            assert (await server.start(start)).status == again
            await stage.until(lambda: len(controller.chats) == (7 if dedupe == "run" else 1))
            go.set()
            await server.quiet()
            assert (await server.start(start)).status == again
            await server.quiet()
            played = 8 if dedupe == "run" else 1
            assert len(controller.chats) == played and len(controller.acked) == 2 * played
        async with stage.serving(serve=serve) as server:
            assert (await server.start(start)).status == again
            assert await server.status("r") in ("success", "running", "queued", "grading")
            await server.quiet()
            assert len(controller.chats) == played + (dedupe == "run")

    stage.run(test)


def test_what_makes_two_starts_of_the_first_generation_one_45_46_47_48(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(serve='dedupe = "reject"') as server:  # this generation counts on being joined

            async def start(name: str, **more: Any) -> str:
                reply = await server.start(controller.start_of(name, 1, **more))
                assert reply.status == 202
                return str(reply.body["rollout_id"])

            assert await start("one", idempotency_key="k") == "one"
            assert await start("two", idempotency_key="k") == "one"  # the key counts, and its leader answers
            assert await start("k") == "k"  # a key is no id
            assert await start("three", idempotency_key="") == "three"  # no key at all
            assert await start("three") == "three"
            await server.quiet()
            assert await start("two", idempotency_key="k") == "one"
            assert sorted(seen.rollout for seen in controller.callbacks) == ["k", "one", "three"]

    stage.run(test)


def test_after_its_time_a_key_is_free_49(stage: Any) -> None:
    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(serve='record_ttl = "300ms"\ncleanup_interval = "50ms"') as server:
            start = controller.start_of("r", 1)
            for _ in range(4):
                assert (await server.start(start)).status == 202
            await server.quiet()
            assert len(controller.callbacks) == 1
            await server.becomes("r", "unknown")
            assert (await server.start(start)).status == 202
            await server.quiet()
            assert len(controller.callbacks) == 2

    stage.run(test)


def test_nothing_is_scheduled_before_it_can_be_answered_50_51(stage: Any) -> None:
    """A start that the file's templates cannot be filled in with leaves nothing behind, and may be corrected."""

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(workflow='system = "level {{ row.level }}"') as server:
            refused = await server.start(controller.start_of("r", 1))
            assert refused.status == 422 and "level" in str(refused.body)
            assert server.house.engine.load().held == 0 and on_disk(stage.state) == 0
            fine = await server.start(controller.start_of("r", 1, metadata={"ground_truth": "4", "level": 3}))
            assert fine.status == 202
            await server.quiet()
            assert controller.chats[0].body["messages"][0]["content"] == "level 3"

    stage.run(test)


@pytest.mark.parametrize("generation", [1, 3])
def test_a_verdict_that_the_disk_does_not_take(stage: Any, generation: int) -> None:
    """Nothing is told before it is written down, nothing is lost, and nothing is told twice."""

    async def test() -> None:
        go = asyncio.Event()

        async def chat(seen: Any) -> str:
            await go.wait()
            return "4"

        controller = await stage.controller(chat=chat)
        async with stage.serving() as server:
            assert (await server.start(controller.start_of("r", generation))).status == 202
            await stage.until(lambda: controller.chats)
            with stage.no_room():
                go.set()
                await server.becomes("r", "grading")
                await asyncio.sleep(0.1)
                assert await server.status("r") == "grading" and not controller.callbacks
                assert server.house.engine.load().running == 0
            await server.becomes("r", "success")
            await server.quiet()
            assert len(controller.callbacks) == (1 if generation == 1 else 2)

    stage.run(test)


@pytest.mark.parametrize("generation", [1, 2, 3])
def test_metadata_are_measured_as_escaped_json_39_40(stage: Any, generation: int) -> None:
    """Whatever the dialect; what is refused leaves nothing behind."""

    async def test() -> None:
        controller = await stage.controller()
        async with stage.serving(serve='max_metadata = "2KiB"') as server:

            async def start(name: str, signs: int) -> Any:
                more = {"ground_truth": "4", "t": "漢" * signs}
                return await server.start(controller.start_of(name, generation, metadata=more))

            refused = await start("r", 350)  # 1 KiB of UTF-8, and more than 2 KiB escaped
            assert refused.status == 422 and refused.body["detail"][0]["loc"] == ["body", "metadata"]
            assert "2048" in refused.body["detail"][0]["msg"] and server.house.engine.load().held == 0
            assert (await start("r", 300)).status == 202
            await server.quiet()
        assert on_disk(stage.state) == 1

    stage.run(test)
