"""`Opened`: whatever was opened is closed, in the reverse order, in the task that opened it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest

from runner.build.live import ResourcePart
from runner.build.opening import Opened


class Log(list[str]):
    def part(self, name: str, make: Callable[..., Any] | None = None) -> ResourcePart:
        return ResourcePart(name, make or self.manager(name))

    def manager(self, name: str, **how: Any) -> Callable[[], Any]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[str]:
            task = asyncio.current_task()
            self.append(f"+{name}")
            yield name
            assert asyncio.current_task() is task
            if "error" in how:
                raise how["error"]
            await asyncio.sleep(how.get("wait", 0))
            self.append(f"-{name}")

        return opened


def test_closed_in_the_reverse_order_even_when_one_fails() -> None:
    log = Log()

    async def main() -> None:
        opened = Opened({"run": 1})
        for part in (log.part("a"), log.part("b", log.manager("b", error=OSError("no"))), log.part("c")):
            await opened.open(part)
        assert opened.values == {"run": 1, "a": "a", "b": "b", "c": "c"}
        failures = await opened.close()
        assert [(name, str(error)) for name, error in failures] == [("b", "no")]
        assert await opened.close() == []

    asyncio.run(main())
    assert log == ["+a", "+b", "+c", "-c", "-a"]


def test_one_that_hangs_is_given_up_and_the_others_close() -> None:
    log = Log()

    async def main() -> None:
        opened = Opened()
        for part in (log.part("a"), log.part("b", log.manager("b", wait=60))):
            await opened.open(part)
        failures = await opened.close(0.05)
        assert [(name, str(error)) for name, error in failures] == [("b", "not closed within 0.05 s")]

    asyncio.run(main())
    assert log == ["+a", "+b", "-a"]


def test_cancelled_while_it_closes() -> None:
    log = Log()

    async def main() -> None:
        async def work() -> None:
            opened = Opened()
            for part in (log.part("a"), log.part("b", log.manager("b", wait=60))):
                await opened.open(part)
            await opened.close()

        task = asyncio.create_task(work())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert log == ["+a", "+b", "-a"]


@pytest.mark.parametrize("error", [OSError("no"), SystemExit(1), asyncio.CancelledError()])
def test_whatever_closing_raises_is_reported(error: BaseException) -> None:
    log = Log()

    async def main() -> Any:
        opened = Opened()
        await opened.open(log.part("a", log.manager("a", error=error)))
        return await opened.close()

    assert [(name, type(problem)) for name, problem in asyncio.run(main())] == [("a", type(error))]


def test_a_synchronous_one_is_entered_and_left_in_threads() -> None:
    threads = []

    @contextmanager
    def opened() -> Iterator[int]:
        threads.append(threading.current_thread())
        yield 3
        threads.append(threading.current_thread())

    async def main() -> None:
        both = Opened()
        await both.open(ResourcePart("a", opened))
        assert both.values == {"a": 3}
        assert await both.close() == []

    asyncio.run(main())
    assert len(threads) == 2
    assert threading.main_thread() not in threads


def test_a_synchronous_one_that_nobody_waits_for_is_left_again() -> None:
    log: list[str] = []

    @contextmanager
    def slow() -> Iterator[int]:
        time.sleep(0.1)
        log.append("+")
        yield 3
        log.append("-")

    async def main() -> None:
        opened = Opened()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(opened.open(ResourcePart("a", slow)), 0.02)
        assert await opened.close() == []
        await asyncio.sleep(0.2)

    asyncio.run(main())
    assert log == ["+", "-"]


def test_a_factory_may_be_a_coroutine() -> None:
    log = Log()

    async def factory() -> Any:
        return log.manager("a")()

    async def main() -> None:
        opened = Opened()
        await opened.open(ResourcePart("a", factory))
        await opened.close()

    asyncio.run(main())
    assert log == ["+a", "-a"]
