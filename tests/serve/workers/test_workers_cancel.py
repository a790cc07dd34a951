"""Cancels while workers die and come back, and duplicates that land on another worker: as with one process."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from typing import Any

import pytest

GRADER = """
import asyncio

async def grade(messages, ground_truth, metadata):
    try:
        await asyncio.sleep(20)
    finally:
        await asyncio.sleep(0.5)  # its leave
"""
SLOWLY = '[graders.slow]\nkind = "python"\ncall = "./code.py:grade"\n'


def rows(crowd: Any, what: str) -> list[Any]:
    with sqlite3.connect(crowd.folder / "state" / "rollouts.db") as connection:
        return list(connection.execute(what))


async def ask_any(server: Any, *asked: Any) -> Any:
    """Over connections of their own until one is answered: the kernel may choose a worker that has just died."""
    while True:
        try:
            return await server.ask(*asked)
        except (OSError, EOFError):
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("how", ["killed", "stopped"])
@pytest.mark.parametrize("report", [False, True])
def test_a_cancel_of_what_a_dead_worker_held_takes_effect(crowd: Any, how: str, report: bool) -> None:
    """Whether its worker is being started again, or hangs and wakes up later: cancelled, and told as asked for."""

    async def test(controller: Any) -> None:
        controller.gate.clear()
        names = [f"r{number}" for number in range(12)]
        async with crowd.serving(2, f"max_concurrent = 8\nreport_cancelled = {str(report).lower()}") as server:
            answers = await asyncio.gather(*(server.ask("POST", "/rollout", controller.body(name)) for name in names))
            assert {status for status, _ in answers} == {202}
            await crowd.until(lambda: len(controller.playing) == 8)
            asked = len(controller.asked)
            assert len(set(rows(crowd, "SELECT worker FROM rollouts"))) == 2
            if how == "killed":
                os.kill(server.workers()[0], signal.SIGKILL)
                status, body = await ask_any(server, "POST", "/rollout/cancel", {"all": True})
            else:
                hangs, client = server.workers()[0], None
                os.kill(hangs, signal.SIGSTOP)
                while client is None:
                    client = await server.client()
                    try:
                        async with asyncio.timeout(0.5):
                            await client.ask("GET", "/rollout/none/status")
                    except TimeoutError:
                        client = None
                status, body = await client.ask("POST", "/rollout/cancel", {"all": True})
                os.kill(hangs, signal.SIGCONT)
            assert status == 200 and sorted(body["dispositions"]) == sorted(names), body
            assert set(body["dispositions"].values()) <= {"cancelled_running", "cancelled_queued"}
            controller.gate.set()

            async def words() -> set[str]:
                return {(await ask_any(server, "GET", f"/rollout/{name}/status"))[1]["status"] for name in names}

            await crowd.until(lambda: rows(crowd, "SELECT min(phase) FROM rollouts") == [(2,)])
            assert await words() == {"cancelled"}
            assert rows(crowd, "SELECT DISTINCT status FROM rollouts") == [("cancelled",)]
            if report:
                await crowd.until(lambda: len(controller.verdicts) == 12)
            assert controller.verdicts == ({name: [None] for name in names} if report else {})
            if how == "killed":  # nothing was played again; one that hung may begin what it has not heard is cancelled
                assert len(controller.asked) == asked

    crowd.run(test)


def test_a_duplicate_is_answered_by_any_worker_as_by_the_first(crowd: Any) -> None:
    """While the first is being cancelled: come back later. When it is: refused, for its completion had been told."""
    (crowd.folder / "code.py").write_text(GRADER)

    async def test(controller: Any) -> None:
        async with crowd.serving(3, SLOWLY) as server:
            assert (await server.ask("POST", "/rollout", controller.body("r")))[0] == 202
            await crowd.until(lambda: rows(crowd, "SELECT phase FROM rollouts") == [(1,)])
            cancelling = asyncio.ensure_future(server.ask("POST", "/rollout/cancel", {"ids": ["r"]}))
            await crowd.until(lambda: rows(crowd, "SELECT count(*) FROM cancels") == [(1,)])
            during = await asyncio.gather(*(server.ask("POST", "/rollout", controller.body("r")) for _ in range(12)))
            assert not cancelling.done()
            assert {status for status, _ in during} == {429}
            assert {body["detail"] for _, body in during} == {"the rollout is just being cancelled; retry later"}
            assert await cancelling == (200, {"dispositions": {"r": "cancelled_running"}})
            after = await asyncio.gather(*(server.ask("POST", "/rollout", controller.body("r")) for _ in range(12)))
            assert {status for status, _ in after} == {409}
            assert controller.asked == ["r"]

    crowd.run(test)
