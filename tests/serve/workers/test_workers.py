"""`osmosis-run serve --workers N`: to a controller, one server; kills and signals included."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any


def rows(crowd: Any, what: str) -> list[Any]:
    with sqlite3.connect(crowd.folder / "state" / "rollouts.db") as connection:
        return list(connection.execute(what))


def spread(crowd: Any) -> dict[int, int]:
    """Rollouts by the worker that had them."""
    return dict(rows(crowd, "SELECT worker, count(*) FROM rollouts GROUP BY worker"))


async def start_all(server: Any, controller: Any, names: list[str]) -> list[int]:
    """Start each over a connection of its own, all at once."""
    answers = await asyncio.gather(*(server.ask("POST", "/rollout", controller.body(name)) for name in names))
    return [status for status, _ in answers]


def test_one_connection_does_not_leave_other_workers_idle(crowd: Any) -> None:
    async def test(controller: Any) -> None:
        controller.gate.clear()
        names = [f"r{number}" for number in range(12)]
        async with crowd.serving(3) as server:
            only = await server.client()
            for name in names:
                assert (await only.ask("POST", "/rollout", controller.body(name)))[0] in (200, 202)
            await crowd.until(lambda: len(controller.playing) == 12)
            assert len(spread(crowd)) == 3 and min(spread(crowd).values()) >= 2
            # Each is known over any connection, and counts once in what all say together.
            for name in names[::4]:
                for _ in range(4):
                    assert (await server.ask("GET", f"/rollout/{name}/status"))[1]["status"] == "running"
            health = (await server.ask("GET", "/health"))[1]
            assert health["concurrency"] == {"max_concurrent": 256, "queued": 0, "running": 12}
            assert health["workers"] == {"of": 3, "answering": 3}
            controller.gate.set()
            await crowd.until(lambda: len(controller.verdicts) == 12)
            assert controller.verdicts == {name: [1.0] for name in names}
            for name in names:
                assert (await server.ask("GET", f"/rollout/{name}/status"))[1]["reward"] == 1.0
            text = (await server.ask("GET", "/metrics"))[1]
            found = dict(re.findall(r"^osmosis_rollout_(\S+?)(?:\{\S*\})? (\S+)$", text, re.M))
            assert float(found["rollouts_started_total"]) == 12
            assert (float(found["slots_max"]), float(found["queue_max"])) == (256, 4096)
            starts = re.search(r'starts_total\{dialect="single-sample",status_code="202"\} (\S+)', text)
            assert starts is not None and float(starts[1]) == 12
            server.process.terminate()
            assert await server.process.wait() == 0

    crowd.run(test)
    assert "stopping: no rollout plays or waits" in crowd.errors and "rror" not in crowd.errors


def test_the_limits_are_of_all_workers_and_who_waited_longest_is_next(crowd: Any) -> None:
    async def test(controller: Any) -> None:
        controller.gate.clear()
        names = [f"r{number}" for number in range(30)]
        async with crowd.serving(3, "max_concurrent = 4\nmax_queue = 8") as server:
            statuses = await start_all(server, controller, names)
            assert sorted(statuses) == [202] * 12 + [429] * 18
            await crowd.until(lambda: len(controller.playing) == 4)
            health = (await server.ask("GET", "/health"))[1]
            assert health["concurrency"] == {"max_concurrent": 4, "queued": 8, "running": 4}
            taken = [name for name, status in zip(names, statuses, strict=True) if status == 202]
            # A duplicate of what runs is joined, though there is no room, whichever worker it comes to.
            assert await start_all(server, controller, taken[:6]) == [202] * 6
            controller.gate.set()
            await crowd.until(lambda: len(controller.verdicts) == 12)
            assert controller.most == 4 and sorted(controller.asked) == sorted(taken)
            controller.gate.clear()
            late = [f"late{number}" for number in range(3)]  # the room is there again
            assert await start_all(server, controller, late) == [202] * 3
            controller.gate.set()
            await crowd.until(lambda: len(controller.verdicts) == 15)
        assert {tuple(each) for each in controller.verdicts.values()} == {(1.0,)}

    crowd.run(test)


def test_duplicates_at_one_moment_are_one_rollout(crowd: Any) -> None:
    async def test(controller: Any) -> None:
        async with crowd.serving(2) as server:
            names = [name for name in ("a", "b", "c", "d") for _ in range(10)]
            assert set(await start_all(server, controller, names)) == {202}
            await crowd.until(lambda: len(controller.verdicts) == 4)
            assert set(await start_all(server, controller, names[::5])) == {202}  # long ended
        assert sorted(controller.asked) == ["a", "b", "c", "d"]

    crowd.run(test)


def test_cancel_reaches_every_worker(crowd: Any) -> None:
    async def test(controller: Any) -> None:
        controller.gate.clear()
        names = [f"{kind}-{number}" for kind in ("x", "y") for number in range(6)]
        async with crowd.serving(2, "max_concurrent = 10") as server:
            assert set(await start_all(server, controller, names)) == {202}
            await crowd.until(lambda: len(controller.playing) == 10)
            assert len(spread(crowd)) == 2

            async def cancel(**selector: Any) -> dict[str, str]:
                async with asyncio.timeout(1.2):
                    status, body = await server.ask("POST", "/rollout/cancel", selector)
                assert status == 200
                return dict(body["dispositions"])

            assert (await cancel(ids=["x-0", "no"]))["no"] == "not_found"
            assert len(await cancel(prefix="x-")) == 5  # all that begins so but the one that has ended
            found = await cancel(all=True)
            assert sorted(found) == [f"y-{number}" for number in range(6)]
            assert set(found.values()) <= {"cancelled_running", "cancelled_queued"}
            words = {(await server.ask("GET", f"/rollout/{name}/status"))[1]["status"] for name in names}
            assert words == {"cancelled"}

    crowd.run(test)


def test_a_worker_that_is_killed_is_replaced_and_its_rollouts_are_played(crowd: Any) -> None:
    async def test(controller: Any) -> None:
        controller.gate.clear()
        names = [f"r{number}" for number in range(12)]
        async with crowd.serving(2, "max_concurrent = 8") as server:
            assert set(await start_all(server, controller, names)) == {202}
            await crowd.until(lambda: len(controller.playing) == 8)
            before = server.workers()
            assert len(before) == 2
            os.kill(before[0], signal.SIGKILL)
            # The port is served all the while, by the other one.
            more = [f"more{number}" for number in range(4)]
            await asyncio.sleep(0.05)
            assert set(await start_all(server, controller, more)) == {202}
            await crowd.until(lambda: len(server.workers()) == 2)
            controller.gate.set()
            await crowd.until(lambda: len(controller.verdicts) == 16)
            health: dict[str, Any] = {}
            while not health or health["workers"]["answering"] < 2:
                health = (await server.ask("GET", "/health"))[1]
            server.process.terminate()
            assert await server.process.wait() == 0
        assert controller.verdicts == {name: [1.0] for name in [*names, *more]}
        assert rows(crowd, "SELECT count(*), sum(phase = 2) FROM rollouts") == [(16, 16)]

    crowd.run(test)
    assert re.search(r"worker [01] ended by SIGKILL; started again", crowd.errors)
    # What has gone on, said by each before it ends, and whose line it is.
    line = r"in \S+ s: \d+ accepted, \d+ ended \(\d+ scored\); now 0 play, 0 wait, \d+ callbacks? owed +worker=[01]"
    assert re.search(line, crowd.errors)


def test_when_the_supervisor_is_killed_nothing_stays_and_a_new_server_takes_over(crowd: Any) -> None:
    async def test(controller: Any) -> None:
        controller.gate.clear()
        names = [f"r{number}" for number in range(9)]
        async with crowd.serving(3) as server:
            assert set(await start_all(server, controller, names)) == {202}
            await crowd.until(lambda: len(controller.playing) == 9)
            workers = server.workers()
            server.process.kill()
            await crowd.until(lambda: not any(Path(f"/proc/{each}").exists() for each in workers), 5)
        controller.gate.set()
        async with crowd.serving(1) as server:  # one now does what three had begun
            await crowd.until(lambda: len(controller.verdicts) == 9)
            for name in names:
                assert (await server.ask("GET", f"/rollout/{name}/status"))[1]["status"] == "success"
        assert {tuple(each) for each in controller.verdicts.values()} == {(1.0,)}

    crowd.run(test)


def test_a_drain_lets_what_plays_end_and_says_what_did_not(crowd: Any) -> None:
    async def test(controller: Any) -> None:
        controller.gate.clear()
        async with crowd.serving(2) as server:
            assert set(await start_all(server, controller, ["a", "b", "c", "d"])) == {202}
            await crowd.until(lambda: len(controller.playing) == 4)
            held = await server.client()
            assert (await held.ask("GET", "/health"))[0] == 200
            # One state file, one server.
            done = await asyncio.to_thread(
                subprocess.run,
                [str(Path(sys.executable).with_name("osmosis-run")), "serve", "--port", "0"],
                check=False, cwd=crowd.folder, capture_output=True, text=True, timeout=20,
            )  # fmt: skip
            assert (
                done.returncode == 1
                and f"another osmosis-run is serving with this file (pid {server.pid}" in done.stderr
            )
            server.process.send_signal(signal.SIGINT)
            await asyncio.sleep(0.2)
            assert (await held.ask("POST", "/rollout", controller.body("late")))[0] == 503
            assert await server.process.wait() == 3
        assert {tuple(each) for each in controller.verdicts.values()} <= {(None,)}

    crowd.run(test)
    assert "draining: 4 rollouts play, 0 wait; they have 2 s" in crowd.errors
    assert "4 rollouts could not be finished" in crowd.errors


def test_a_second_signal_ends_all_at_once(crowd: Any) -> None:
    async def test(controller: Any) -> None:
        controller.gate.clear()
        async with crowd.serving(2, "") as server:
            assert set(await start_all(server, controller, ["a", "b"])) == {202}
            workers = server.workers()
            server.process.terminate()
            await asyncio.sleep(0.2)
            server.process.terminate()
            async with asyncio.timeout(2):
                assert await server.process.wait() == 130
            await crowd.until(lambda: not any(Path(f"/proc/{each}").exists() for each in workers), 2)

    crowd.run(test)


def test_what_no_worker_can_open_is_said_once(crowd: Any) -> None:
    (crowd.folder / "state").mkdir()
    (crowd.folder / "state" / "rollouts.db").write_text("not a database, but long enough to be looked at" * 50)
    (crowd.folder / "workflow.toml").write_text("[workflow]\nname = 'x'\n[serve]\nport = 0\nworkers = 2\n")
    command = [str(Path(sys.executable).with_name("osmosis-run")), "serve"]
    done = subprocess.run(command, check=False, cwd=crowd.folder, capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("is not a database") == 1 and "Traceback" not in done.stderr
