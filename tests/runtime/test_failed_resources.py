"""A resource that does not open fails a rollout or ends the run, clearly; one that does not close does neither."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from runner.records.failure import ConfigFailure

EXACT = '[graders.answer]\nkind = "exact"\n'


RESOURCES = """
    import asyncio
    import time
    from contextlib import asynccontextmanager, contextmanager

    closed = []

    def no_manager():
        return 3

    @asynccontextmanager
    async def broken():
        raise OSError("no such database")
        yield

    @asynccontextmanager
    async def cancels():
        raise asyncio.CancelledError
        yield

    @asynccontextmanager
    async def exits():
        raise SystemExit(1)
        yield

    @contextmanager
    def sync_broken():
        raise OSError("no such database")
        yield

    @asynccontextmanager
    async def hangs():
        await asyncio.sleep(60)
        yield

    @asynccontextmanager
    async def good(name="good"):
        yield name
        closed.append(name)

    @contextmanager
    def sync_good():
        yield "sync"
        closed.append("sync")

    @asynccontextmanager
    async def bad_close():
        yield 1
        raise OSError("cannot flush")

    @asynccontextmanager
    async def swallows():
        try:
            yield 1
        except BaseException:
            pass
"""


@pytest.fixture
def resources(project: Any) -> Any:
    project.write("res.py", RESOURCES)
    return project


def resource(name: str, scope: str, key: str = "db") -> str:
    return f'[resources.{key}]\nopen = "./res.py:{name}"\nscope = "{scope}"\n'


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_manager", "no context manager"),
        ("broken", "OSError: no such database"),
        ("sync_broken", "OSError: no such database"),
        ("cancels", "CancelledError"),
        ("exits", "SystemExit"),
    ],
)
def test_a_resource_of_the_rollout_that_cannot_be_opened(resources: Any, name: str, said: str) -> None:
    outcome = resources.play(EXACT + resource(name, "rollout"))
    assert (outcome.status, outcome.stop_reason, outcome.failure.boundary) == ("failed", "resource_failed", "tool")
    assert "'db'" in outcome.failure.message
    assert said in outcome.failure.message
    if "broken" in name:
        assert f"in {name}" in outcome.failure.where
        assert "res.py" in outcome.failure.where


def test_a_resource_that_hangs_while_it_opens(resources: Any) -> None:
    outcome = resources.play(EXACT + resource("hangs", "rollout") + '[limits]\ntime = "100ms"\n')
    assert (outcome.status, outcome.stop_reason) == ("failed", "resource_failed")
    assert "`[limits] time`" in outcome.failure.message


def test_a_resource_that_cannot_be_closed_changes_nothing(resources: Any) -> None:
    events: list[Any] = []
    toml = EXACT + resource("good", "rollout", "a") + resource("bad_close", "rollout", "b")
    outcome = resources.play(toml + resource("sync_good", "rollout", "c"), events=events)
    assert (outcome.status, outcome.reward) == ("scored", 1.0)
    told = [event for event in events if getattr(event, "name", "") == "resource_close_failed"]
    assert [event.data["resource"] for event in told] == ["b"]
    assert "cannot flush" in told[0].data["message"]


@pytest.mark.parametrize("name", ["no_manager", "broken", "sync_broken", "exits", "cancels"])
def test_a_resource_of_the_run_that_cannot_be_opened(resources: Any, name: str) -> None:
    with pytest.raises(ConfigFailure, match="resource 'db' could not be opened") as caught:
        resources.play(EXACT + resource(name, "run"))
    assert name == "no_manager" or caught.value.where.endswith(f"in {name}") or name == "cancels"


def test_a_resource_of_the_run_that_cannot_be_closed(resources: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        outcome = resources.play(EXACT + resource("bad_close", "run"))
    assert outcome.status == "scored"
    assert "resource 'db' could not be closed: OSError: cannot flush" in caplog.text


def test_a_resource_of_the_run_cannot_hide_an_error(resources: Any) -> None:
    async def main() -> None:
        async with resources.open(EXACT + resource("swallows", "run")):
            raise ArithmeticError("ours")

    with pytest.raises(ArithmeticError):
        asyncio.run(main())
