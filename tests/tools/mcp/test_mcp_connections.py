"""MCP servers of every temper: the official package's, and one of our own that dies, hangs and floods."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from runner.records.completion import Caller, ToolSpec
from runner.tools.mcp.connection import Connection, ServerLost
from runner.tools.mcp.endpoint import CommandEndpoint, Endpoint, UrlEndpoint
from runner.tools.mcp.names import wire_name
from runner.tools.mcp.tool import McpTool
from runner.tools.tool import ToolResult, ToolScope

SERVERS = Path(__file__).parent / "servers"


def official(**env: str) -> Endpoint:
    return CommandEndpoint([sys.executable, str(SERVERS / "official.py")], env)


def unruly(*how: str) -> Endpoint:
    return CommandEndpoint([sys.executable, str(SERVERS / "unruly.py"), *how])


def connected(endpoint: Endpoint, timeout: float = 10.0, start_time: float = 20.0) -> Connection:
    return Connection("server", endpoint, start_time=start_time, timeout=timeout)


def tool(connection: Connection, name: str, **keys: Any) -> McpTool:
    return McpTool(ToolSpec(name, "", {}), name, connection, max_output=keys.pop("max_output", 1000), **keys)


async def use(connection: Connection, name: str, /, **arguments: Any) -> tuple[str, str]:
    result: ToolResult = await tool(connection, name).call(arguments, ToolScope(Caller("r")))
    return result.status, result.content


def run(endpoint: Endpoint, test: Any, **keys: Any) -> None:
    async def around() -> None:
        connection = connected(endpoint, **keys)
        try:
            await test(connection)
        finally:
            await connection.aclose()

    asyncio.run(around())


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, str(SERVERS / "official.py"), str(port)], stderr=subprocess.DEVNULL)
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        sleep(0.1)
    yield f"http://127.0.0.1:{port}/mcp"
    server.kill()
    server.wait()


@pytest.mark.parametrize("way", ["command", "url"])
def test_the_official_server_by_command_and_by_address(way: str, address: str) -> None:
    async def test(connection: Connection) -> None:
        offered = {each.name: each for each in await connection.tools()}
        assert {"add", "remember", "fail", "sleep"} <= offered.keys()
        assert offered["add"].description == "Add two numbers."
        assert offered["add"].input_schema["required"] == ["a", "b"]
        assert await use(connection, "add", a=2, b=3) == ("ok", "5")
        assert (await use(connection, "remember", word="one"))[1].endswith("one")
        status, said = await use(connection, "fail")
        assert (status, "fail" in said) == ("error", True), said
        assert await use(connection, "picture") == ("ok", "see:\n[image, image/png, 3 bytes]")
        status, said = await use(connection, "long", count=100_000)
        assert (status, len(said) <= 1000, "cut" in said) == ("ok", True, True)
        assert (await use(connection, "nothing"))[0] == "error"
        assert (await use(connection, "add", a="x"))[0] == "error"
        began = monotonic()
        assert await asyncio.gather(*(use(connection, "sleep", seconds=0.5) for _ in range(4))) == [("ok", "slept")] * 4
        assert monotonic() - began < 1.5

    run(official() if way == "command" else UrlEndpoint(address), test)


def test_a_server_gets_its_own_variables_and_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OUR_SECRET", "secret")

    async def test(connection: Connection) -> None:
        assert await use(connection, "environment", name="GIVEN") == ("ok", "this")
        assert await use(connection, "environment", name="OUR_SECRET") == ("ok", "unset")

    run(official(GIVEN="this"), test)


def test_a_server_that_dies_is_an_answer_and_is_started_again() -> None:
    async def test(connection: Connection) -> None:
        assert (await use(connection, "remember", word="a"))[0] == "ok"
        status, said = await use(connection, "die")
        assert status == "error"
        assert said.startswith("The MCP server `server` went away while it was asked")
        assert (await use(connection, "remember", word="b"))[1].replace("\n", "") == "b"  # a new process

    run(official(), test)


def test_what_a_dying_server_says_last_is_passed_on() -> None:
    async def test(connection: Connection) -> None:
        assert "out of cheese" in (await use(connection, "go"))[1]

    run(unruly("die"), test)


def test_a_call_that_hangs_times_out_and_the_server_is_replaced() -> None:
    async def test(connection: Connection) -> None:
        began = monotonic()
        assert (await use(connection, "go"))[0] == "timeout"
        assert monotonic() - began < 8.0

    run(unruly("hang"), test, timeout=0.5)


def test_a_slow_call_does_not_cost_a_server_that_still_answers(address: str) -> None:
    async def test(connection: Connection) -> None:
        await use(connection, "remember", word="kept")
        assert (await use(connection, "sleep", seconds=5))[0] == "timeout"
        assert "kept" in (await use(connection, "remember", word="more"))[1]

    run(official(), test, timeout=1.0)


@pytest.mark.parametrize(("how", "words"), [("flood", "32 MiB"), ("notify", "10,000 notifications")])
def test_a_flood_is_cut_off(how: str, words: str) -> None:
    async def test(connection: Connection) -> None:
        began = monotonic()
        status, said = await use(connection, "go")
        assert (status, words in said) == ("error", True), said
        assert monotonic() - began < 15.0

    run(unruly(how), test, timeout=20.0)


@pytest.mark.parametrize(
    ("how", "status", "words"),
    [
        ("garbage", "ok", "after all"),
        ("stderr", "ok", "quiet"),
        ("refuse", "error", "not today"),
        ("wrong", "error", ""),
    ],
)
def test_odd_answers_are_answers(how: str, status: str, words: str) -> None:
    async def test(connection: Connection) -> None:
        found, said = await use(connection, "go")
        assert (found, words in said) == (status, True), said

    run(unruly(how), test)


def test_what_a_server_started_ends_with_it() -> None:
    pids: list[int] = []

    async def test(connection: Connection) -> None:
        pids.append(int((await use(connection, "go"))[1]))
        assert _runs(pids[0])

    run(unruly("child"), test)
    sleep(0.1)
    assert not _runs(pids[0])


def _runs(pid: int) -> bool:
    """Whether a process still does anything: a dead one may stay listed until its parent asks after it."""
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def test_a_server_that_does_not_end_with_its_input_is_killed() -> None:
    async def test(connection: Connection) -> None:
        await connection.tools()

    began = monotonic()
    run(unruly("stays"), test)
    assert monotonic() - began < 8.0


@pytest.mark.parametrize(
    ("endpoint", "words"),
    [
        (CommandEndpoint(["no-such-program"]), "there is no program `no-such-program`"),
        (unruly("stillborn"), "no licence"),
        (unruly("deaf"), "was not there within"),
        (UrlEndpoint("http://127.0.0.1:9/mcp"), "cannot be reached"),
    ],
    ids=["missing", "stillborn", "deaf", "refused"],
)
def test_a_server_that_cannot_be_had_says_why(endpoint: Endpoint, words: str) -> None:
    async def test(connection: Connection) -> None:
        with pytest.raises(ServerLost, match=words):
            await connection.tools()
        began = monotonic()
        assert (await use(connection, "go"))[0] == "error"  # after a pause, not at once
        assert monotonic() - began > 0.3

    run(endpoint, test, start_time=1.5)


def test_a_rollout_may_have_a_server_of_its_own() -> None:
    async def test() -> None:
        made: list[Connection] = []

        def connect() -> Connection:
            made.append(connected(official()))
            return made[-1]

        shared = connected(official())
        each = tool(shared, "remember", connect=connect)
        scopes = [ToolScope(Caller("a")), ToolScope(Caller("b"))]
        for scope, word in zip(scopes, "ab", strict=True):
            for _ in range(2):
                result = await each.call({"word": word}, scope)
            assert result.content.split() == [word, word]
        assert len(made) == 2
        for scope in scopes:
            for close in scope.closers:
                await close()

    asyncio.run(test())


def test_names_are_legal_and_told_apart() -> None:
    assert wire_name("files/read_file") == "files__read_file"
    assert wire_name("plain") == "plain"
    odd = {wire_name(f"s/{name}") for name in ("a b", "a.b", "a/b", "ä", "x" * 100, "x" * 101)}
    assert len(odd) == 6
    assert all(len(name) <= 64 and name.replace("_", "").replace("-", "").isascii() for name in odd)
