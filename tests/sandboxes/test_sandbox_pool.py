"""The pool: never more than `max`, in turn, nothing used twice, nothing left, whoever gives up meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from runner.records.failure import SandboxError
from runner.sandboxes.pool import SandboxPool
from runner.sandboxes.sandbox import Command, Entry, Ran, Running, Sandbox


class Fake:
    """A sandbox that knows its number."""

    workdir = "/"

    def __init__(self, maker: Maker, number: int) -> None:
        self.maker = maker
        self.number = number
        self.rows: list[Mapping[str, Any]] = []

    async def stop(self) -> None:
        await asyncio.sleep(self.maker.seconds)
        self.maker.alive.discard(self.number)

    async def exec(self, command: Command) -> Ran:
        return Ran(0, b"", b"", 0.0)

    async def start(self, command: Command) -> Running:
        raise NotImplementedError

    async def put(self, path: str, data: bytes, *, mode: int | None = None) -> None: ...

    async def get(self, path: str, *, limit: int | None = None) -> bytes:
        return b""

    async def list(self, path: str = ".") -> list[Entry]:
        return []

    async def remove(self, path: str) -> None: ...


class Maker:
    """Counts. `failing` makes the next so many makings fail."""

    kind = "fake"

    def __init__(self, seconds: float = 0.0, failing: int = 0) -> None:
        self.seconds = seconds
        self.failing = failing
        self.made = self.most = 0
        self.alive: set[int] = set()
        self.closed = False

    async def probe(self) -> Sequence[str]:
        return ["it is a fake"]

    async def make(self, name: str) -> Sandbox:
        self.made += 1
        number = self.made
        self.alive.add(number)
        self.most = max(self.most, len(self.alive))
        await asyncio.sleep(self.seconds)
        if self.failing:
            self.failing -= 1
            self.alive.discard(number)
            raise SandboxError("nothing left", kind="sandbox_full")
        return Fake(self, number)

    async def aclose(self) -> None:
        self.closed = True


async def prepare(sandbox: Sandbox, row: Mapping[str, Any]) -> None:
    assert isinstance(sandbox, Fake)
    sandbox.rows.append(row)
    if row.get("bad"):
        raise SandboxError("its setup failed", kind="sandbox_setup")
    await asyncio.sleep(row.get("seconds", 0))


def test_at_most_so_many_and_each_once_and_in_turn() -> None:
    async def main() -> None:
        maker = Maker(0.002)
        pool = SandboxPool("work", maker, most=3, warm=2, prepare=prepare)
        assert await pool.open() == ["it is a fake"]
        order: list[int] = []
        used: set[int] = set()

        async def one(n: int) -> None:
            sandbox = await pool.take("r", {"n": n})
            order.append(n)
            assert isinstance(sandbox, Fake) and sandbox.number not in used and sandbox.rows == [{"n": n}]
            used.add(sandbox.number)
            await asyncio.sleep(0.003)
            pool.give_back(sandbox)

        await asyncio.gather(*(one(n) for n in range(30)))
        assert maker.most <= 3 and sorted(order) == list(range(30))
        assert all(abs(place - n) <= 3 for place, n in enumerate(order))
        await pool.aclose()
        assert not maker.alive and maker.closed

    asyncio.run(main())


def test_who_gives_up_takes_no_place_along() -> None:
    async def main() -> None:
        maker = Maker(0.004)
        pool = SandboxPool("work", maker, most=2, prepare=prepare)
        await pool.open()
        tasks = [asyncio.create_task(pool.take("r", {"seconds": 0.003})) for _ in range(20)]
        for n, task in enumerate(tasks):
            await asyncio.sleep(0.001)
            if n % 3:
                task.cancel()
            else:
                task.add_done_callback(lambda done: pool.give_back(done.result()))
        await asyncio.wait(tasks)
        taken = [await asyncio.wait_for(pool.take("r", {}), 2) for _ in range(2)]
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pool.take("r", {}), 0.05)
        for sandbox in taken:
            pool.give_back(sandbox)
        await asyncio.wait_for(pool.take("r", {}), 2)
        assert maker.most <= 2
        await pool.aclose()

    asyncio.run(main())


def test_failures_take_no_place_along() -> None:
    async def main() -> None:
        maker = Maker(failing=3)
        pool = SandboxPool("work", maker, most=1, prepare=prepare)
        for _ in range(3):
            with pytest.raises(SandboxError, match="nothing left"):
                await pool.take("r", {})
        for _ in range(3):
            with pytest.raises(SandboxError, match="setup failed"):
                await pool.take("r", {"bad": True})
        await asyncio.wait_for(pool.take("r", {}), 1)
        await pool.aclose()

    asyncio.run(main())


def test_a_warm_one_that_failed_is_made_again() -> None:
    async def main() -> None:
        maker = Maker(failing=1)
        pool = SandboxPool("work", maker, most=1, warm=1)
        await pool.open()
        await asyncio.sleep(0.01)
        sandbox = await pool.take("r", {})
        assert isinstance(sandbox, Fake) and sandbox.number == 2
        await pool.aclose()

    asyncio.run(main())


def test_one_for_the_run_is_shared_and_made_again_when_lost() -> None:
    async def main() -> None:
        maker = Maker(0.002)
        pool = SandboxPool("work", maker, scope="run", most=2, prepare=prepare)
        first, second = await asyncio.gather(pool.take("a", {"n": 1}), pool.take("b", {"n": 2}))
        assert first is second and isinstance(first, Fake) and first.rows == [{}]
        pool.give_back(first)
        assert await pool.take("c", {}) is first
        fresh = await pool.take_fresh("grading", {"n": 3})
        assert fresh is not first
        pool.give_back_fresh(fresh)
        pool.lost(first)
        assert await pool.take("d", {}) is not first
        await pool.aclose()

    asyncio.run(main())


def test_closed_it_serves_nobody() -> None:
    async def main() -> None:
        pool = SandboxPool("work", Maker(), most=1)
        await pool.take("a", {})
        waiting = asyncio.create_task(pool.take("b", {}))
        await asyncio.sleep(0.01)
        await pool.aclose()
        for use in (waiting, pool.take("c", {})):
            with pytest.raises(SandboxError, match="the run has ended"):
                await use

    asyncio.run(main())
