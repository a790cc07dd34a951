"""Delivery while things go away and come back: the controller, the server, both, many at a time."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
import time
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st


def assert_in_order(controller: Any) -> None:
    """Nothing of a rollout's grader before the controller took or refused its completion, and one payload each."""
    payloads: dict[str, set[bytes]] = {}
    for seen in controller.seen:
        payloads.setdefault(seen.path, set()).add(seen.body)
    assert all(len(bodies) == 1 for bodies in payloads.values())
    graded: set[str] = set()
    for seen in controller.seen:
        rollout = seen.path.split("/")[1]
        if seen.channel == "grader":
            graded.add(rollout)
        else:
            assert rollout not in graded, f"{seen.path} after its grader callback"


def test_a_controller_that_was_away_gets_everything_without_a_stampede(desk: Any) -> None:
    async def test() -> None:
        controller = await desk.controller()
        await controller.stop()
        policy = replace(desk.quick, concurrency=16, base_wait=0.05, max_wait=0.2)
        async with desk.side(policy) as side:
            for number in range(300):
                await side.finish(f"a{number}", controller.url)
            await asyncio.sleep(0.8)
            assert side.deliveries.backlog().away == (controller.url,)
            assert side.deliveries.backlog().pending == 600
            assert len(side.posts) < 60, "only probes go out"
            assert len(asyncio.all_tasks()) < 20
            await controller.start()
            await side.done()
            assert_in_order(controller)
            assert len(controller.acked) == 600 and all(len(bodies) == 1 for bodies in controller.acked.values())
            assert controller.most <= 16
            assert side.deliveries.backlog().away == ()
            first = [path.split("/")[1] for path in controller.paths if path.endswith("completion")]
            assert abs(first.index("a150") - 150) < 40, "oldest first"

    desk.run(test)


def test_a_controller_that_hangs_or_refuses_all_for_a_while_is_only_probed(desk: Any) -> None:
    async def test() -> None:
        back = time.monotonic() + 1.0

        def script(seen: Any) -> Any:
            if time.monotonic() > back:
                return 200
            return "hang" if seen.path < "/a2" else (503, (("retry-after", "1"),), b"")

        controller = await desk.controller(script)
        async with desk.side(replace(desk.quick, timeout=0.3, concurrency=8, max_wait=0.2)) as side:
            for number in range(100):
                await side.finish(f"a{number}", controller.url)
            await side.done()
            assert controller.most <= 9  # one of the connections that were given up may not be gone yet
            assert_in_order(controller)
            assert len(side.posts) < 200 + 60

    desk.run(test)


def test_one_poisonous_callback_holds_nobody_up(desk: Any) -> None:
    async def test() -> None:
        controller = await desk.controller(lambda seen: 500 if seen.path.startswith("/poison") else 200)
        await controller.stop()
        async with desk.side() as side:
            await side.finish("poison", controller.url)
            for number in range(20):
                await side.finish(f"a{number}", controller.url)
            await asyncio.sleep(0.2)
            await controller.start()
            await desk.until(lambda: side.deliveries.backlog().pending == 2)
            assert len(controller.acked) == 40

    desk.run(test)


def test_origins_take_turns_and_a_dead_one_costs_the_others_nothing(desk: Any) -> None:
    async def test() -> None:
        hanging = await desk.controller(lambda seen: "hang")
        slow = await desk.controller(lambda seen: 0.02)
        quick = await desk.controller()
        async with desk.side(replace(desk.quick, timeout=2.0, concurrency=4, at_once=8)) as side:
            for number in range(50):
                await side.finish(f"h{number}", hanging.url)
                await side.finish(f"s{number}", slow.url, ["completion"])
            for number in range(20):
                await side.finish(f"q{number}", quick.url)
            begun = time.monotonic()
            await desk.until(lambda: len(quick.acked) == 40)
            assert time.monotonic() - begun < 1.0
            assert (hanging.most, slow.most <= 4, quick.most <= 4) == (4, True, True)

    desk.run(test)


def test_what_does_not_fit_in_memory_is_read_back_in_pages(desk: Any) -> None:
    async def test() -> None:
        controller = await desk.controller()
        async with desk.side(replace(desk.quick, held=0)) as side:
            for number in range(200):
                await side.finish(f"a{number}", controller.url)
            await side.done()
            assert controller.acked["/a7/grader"] == [b'{"grader":"a7"}']
            assert len(controller.acked) == 400
            assert_in_order(controller)

    desk.run(test)


def test_trap_13_a_new_start_posts_what_is_owed_in_order_and_what_was_abandoned_again(desk: Any) -> None:
    async def test() -> None:
        mood = {"/a/completion": 409, "/b/completion": 500}
        controller = await desk.controller(lambda seen: mood.get(seen.path, 200))
        async with desk.side() as side:
            for name in "abc":
                await side.finish(name, controller.url)
            await desk.until(lambda: len(controller.acked) == 3)  # a's grader, c's both
            await desk.until(lambda: side.deliveries.backlog().pending == 2)
        mood.clear()
        controller.seen.clear()
        async with desk.side() as side:
            assert await side.deliveries.recover() == 3
            await side.done()
            assert sorted(controller.paths) == ["/a/completion", "/b/completion", "/b/grader"]
            assert controller.paths.index("/b/completion") < controller.paths.index("/b/grader")
            assert await side.outbox.owing() == []
        async with desk.side() as side:
            assert await side.deliveries.recover() == 0

    desk.run(test)


def test_trap_14_settle_delivers_what_it_can_and_counts_the_rest(desk: Any) -> None:
    async def test() -> None:
        controller = await desk.controller(lambda seen: 503 if seen.number == 1 else 200)
        dead = await desk.controller()
        await dead.stop()
        async with desk.side(replace(desk.quick, base_wait=3000.0, max_wait=3000.0)) as side:
            for number in range(5):
                await side.finish(f"a{number}", controller.url, ["completion"])
            await side.finish("dead", dead.url)
            await desk.until(lambda: len(side.posts) == 6)
            begun = time.monotonic()
            assert await side.deliveries.settle(5.0) == 2
            assert time.monotonic() - begun < 2.0, "nothing more could happen"
            assert len(controller.acked) == 5
            assert await side.deliveries.settle(0.0) == 2

    desk.run(test)


def test_a_channel_that_is_owed_already_is_not_posted_twice(desk: Any) -> None:
    async def test() -> None:
        controller = await desk.controller()
        async with desk.side() as side:
            await side.finish("a", "http://127.0.0.1:1")
            assert await side.deliveries.recover() == 0
            assert side.deliveries.backlog().pending == 2
            assert controller.seen == []

    desk.run(test)


def test_an_outbox_that_cannot_be_written_stops_no_delivery(desk: Any) -> None:
    async def test() -> None:
        controller = await desk.controller()
        async with desk.side() as side:
            controller.script = lambda seen: 0.1
            await side.finish("a", controller.url)
            await asyncio.sleep(0.03)
            await side.outbox.aclose()
            await side.done()
            assert controller.paths == ["/a/completion", "/a/grader"]
            assert "could not be written down" in side.posts[0].problem

    desk.run(test)


def flaky(rng: Random, *, refusals: bool = True) -> Any:
    """A controller that fails as often as not; each path comes good in the end (404 for good is another's test)."""

    def script(seen: Any) -> Any:
        luck = rng.random()
        if seen.number > 12 or luck > 0.55:
            return 200
        if luck < 0.3:
            return 500
        if luck < 0.48:
            return rng.choice(["reset", "close", "half", "drop-ack", "hang", b"nonsense\r\n\r\n"])
        if luck < 0.52:
            return (429, (("retry-after-ms", "20"),), b"slow down")
        absent = (404, (), b"<html>") if seen.number == 1 else 502
        return rng.choice([absent, 503, 0.01] + ([(409, (), b""), (307, (), b"")] if refusals else []))

    return script


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), rollouts=st.integers(1, 40), concurrency=st.integers(1, 20), restart=st.booleans())
def test_whatever_the_faults_order_holds_and_payloads_are_final(
    desk: Any, tmp_path_factory: pytest.TempPathFactory, seed: int, rollouts: int, concurrency: int, restart: bool
) -> None:
    desk.folder = tmp_path_factory.mktemp("random")
    desk.controllers.clear()

    async def test() -> None:
        controller = await desk.controller(flaky(Random(seed)))
        policy = replace(desk.quick, timeout=0.05, max_wait=0.02, concurrency=concurrency)
        async with desk.side(policy) as side:
            for number in range(rollouts):
                await side.finish(f"a{number}", controller.url)
            if not restart:
                await side.done(20.0)
        if restart:
            async with desk.side(policy) as side:
                await side.deliveries.recover()
                await side.done(20.0)
        refused = {f"/{each.attempt_id}/{each.channel}" for each in side.posts if each.result == "abandoned"}
        wanted = {f"/a{number}/{channel}" for number in range(rollouts) for channel in ("completion", "grader")}
        assert wanted <= set(controller.acked) | refused
        assert all(len(set(bodies)) == 1 for bodies in controller.acked.values())
        if not restart:
            assert_in_order(controller)

    desk.run(test)


SERVER = """
    import asyncio, sys, time
    from pathlib import Path
    from runner.models.connections import Connections
    from runner.serve.delivery.deliveries import CallbackPolicy, Deliveries
    from runner.store.outbox import Accepted, Delivery, Outbox, Owed, Verdict

    async def main(path, base, rollouts, prefix):
        outbox, connections = Outbox.open(Path(path)), Connections()
        policy = CallbackPolicy(timeout=0.2, base_wait=0.01, max_wait=0.05)
        deliveries = Deliveries(outbox, connections, policy)
        await deliveries.recover()
        async def finish(name):
            await outbox.accept(Accepted(name, name, "test", (), b"{}", time.time()))
            owed = [Owed(c, f"{base}/{name}/{c}", f"{c} {name}".encode(), "k") for c in ("completion", "grader")]
            await outbox.settle(name, Verdict("scored", "answered", 1.0, ""), owed)
            print(name, flush=True)
            now = time.time()
            deliveries.owe([Delivery(name, name, o.channel, i, o, 0, now, now, "") for i, o in enumerate(owed)])
        for start in range(0, rollouts, 20):
            await asyncio.gather(*(finish(f"{prefix}{n}") for n in range(start, start + 20)))
        while deliveries.backlog().pending:
            await asyncio.sleep(0.01)
        await deliveries.aclose(); await connections.aclose(); await outbox.aclose()
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]))
"""


def test_traps_1_and_13_killed_servers_lose_and_contradict_nothing(desk: Any) -> None:
    async def test() -> None:
        controller = await desk.controller(flaky(Random(3), refusals=False))
        path = str(desk.folder / "killed.db")
        stored: list[str] = []
        for life, rollouts in enumerate([200, 200, 0]):
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", textwrap.dedent(SERVER), path, controller.url, str(rollouts), f"life{life}-",
                stdout=subprocess.PIPE,
            )  # fmt: skip
            if life < 2:
                enough = len(controller.acked) + 60
                await desk.until(lambda: len(controller.acked) >= enough, 20.0)  # noqa: B023
                process.kill()
            out, _ = await process.communicate()
            stored += out.decode().split()
        assert process.returncode == 0
        assert len(stored) > 20
        missing = {f"/{name}/{channel}" for name in stored for channel in ("completion", "grader")} - set(
            controller.acked
        )
        assert not missing, json.dumps(sorted(missing))
        for name, bodies in controller.acked.items():
            _, rollout, channel = name.split("/")
            assert set(bodies) == {f"{channel} {rollout}".encode()}
            assert controller.paths.index(f"/{rollout}/completion") <= controller.paths.index(name)

    desk.run(test)


def test_nobody_is_away_to_whom_nothing_is_owed(desk: Any) -> None:
    """A controller that never comes back is forgotten with the last callback: each job may bring a port of its own."""

    async def test() -> None:
        controller = await desk.controller(lambda seen: 500)
        async with desk.side(replace(desk.quick, attempts=6)) as side:
            await side.finish("a", controller.url)
            await desk.until(lambda: side.deliveries.backlog().away == (controller.url,))
            await side.done()
            assert side.deliveries.backlog().abandoned == 2
            assert side.deliveries.backlog().away == ()

    desk.run(test)
