"""The short way for plain requests: what it takes it reads as hypercorn's parser would, and the rest is hypercorn's."""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.serve.http.plain import read_plain

_SPEC = importlib.util.spec_from_file_location("short_way_served", Path(__file__).with_name("served.py"))
assert _SPEC is not None and _SPEC.loader is not None
served = importlib.util.module_from_spec(_SPEC)
sys.modules["short_way_served"] = served
_SPEC.loader.exec_module(served)

START = b'{"rollout_id": "a"}'
NAMES = st.sampled_from(
    [b"host", b"Host", b"content-length", b"x-a", b"X-B", b"connection", b"accept", b"expect", b"te"]
)
VALUES = st.sampled_from(
    [b"a", b"", b"5", b"+5", b"05", b" 5 ", b"1, 2", b"keep-alive", b"close", b"a\tb", b"\x00", b"\xff", b"chunked"]
)
LINES = st.lists(st.tuples(NAMES, st.sampled_from([b":", b": ", b" :", b""]), VALUES), max_size=5)
FIRST = st.sampled_from(
    [b"POST /a HTTP/1.1", b"GET /b?c=%20 HTTP/1.1", b"GET  /b HTTP/1.1", b"GET /b HTTP/1.0", b"PUT /b HTTP/1.1",
     b"GET http://h/b HTTP/1.1", b"GET /\xff HTTP/1.1", b"POST /a HTTP/1.1 ", b"PRI * HTTP/2.0"]
)  # fmt: skip
ENDS = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r\n "])


@settings(max_examples=400, deadline=None)
@given(FIRST, LINES, ENDS, st.binary(max_size=8))
def test_what_it_takes_a_general_parser_reads_the_same(
    first: bytes, lines: list[tuple[bytes, bytes, bytes]], end: bytes, body: bytes
) -> None:
    head = end.join([first, b"host: h", *(b"".join(line) for line in lines), b"", b""])
    plain = read_plain(head + body)
    if plain is None:
        return
    parser = h11.Connection(h11.SERVER)
    parser.receive_data(head)
    request = parser.next_event()
    assert isinstance(request, h11.Request)
    assert (plain.method.encode(), plain.target, plain.headers) == (
        request.method,
        request.target,
        list(request.headers),
    )
    assert plain.end == len(head)
    lengths = [int(value) for name, value in request.headers if name == b"content-length"]
    assert plain.length == (lengths[0] if lengths else 0)


def test_the_usual_requests_are_plain_and_others_are_not() -> None:
    usual = b"POST /rollout HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    plain = read_plain(usual)
    assert plain is not None
    assert (plain.method, plain.target, plain.length, usual[plain.end :]) == ("POST", b"/rollout", 2, b"{}")
    for changed in (
        usual.replace(b"Host: h\r\n", b""),
        usual.replace(b"Length: 2", b"Length: 2\r\ncontent-length: 2"),
        usual.replace(b"Length: 2", b"Length: 2\r\nTransfer-Encoding: chunked"),
        usual.replace(b"Length: 2", b"Length: 2\r\n folded: 1"),
        usual.replace(b"\r\n", b"\n"),
        usual[: usual.index(b"\r\n\r\n") + 2],
        usual.replace(b"1.1", b"1.0"),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"",
    ):
        assert read_plain(changed) is None


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def talk(talking: Talk) -> list[Any]:
    """Talk over one connection to a server; the starts that its engine was asked for."""
    engine = served.FakeEngine()

    async def main() -> None:
        async with served.serving(served.make_app(engine)) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.timeout(10):
                await talking(reader, writer)
            writer.close()
            await writer.wait_closed()

    asyncio.run(main())
    return engine.started


def start(body: bytes = START, extra: bytes = b"") -> bytes:
    return b"POST /rollout HTTP/1.1\r\nhost: h\r\n%bcontent-length: %d\r\n\r\n%b" % (extra, len(body), body)


async def answered(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(
        int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")
    )
    return int(head.split(b" ")[1]), await reader.readexactly(length)


def test_requests_follow_each_other_also_in_one_packet() -> None:
    async def talking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start())
        assert await answered(reader) == (202, b"{}")
        writer.write(start() + start() + b"GET /health HTTP/1.1\r\nhost: h\r\n\r\n")
        assert [(await answered(reader))[0] for _ in range(3)] == [202, 202, 200]

    assert len(talk(talking)) == 3


def test_a_body_may_come_in_pieces_and_late() -> None:
    async def talking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        whole = start()
        for piece in (whole[:-10], whole[-10:-5], whole[-5:] + start()):
            writer.write(piece)
            await asyncio.sleep(0.05)
        assert [(await answered(reader))[0] for _ in range(2)] == [202, 202]

    assert talk(talking) == [{"rollout_id": "a"}] * 2


def test_what_was_asked_before_the_peer_closed_its_half_is_answered() -> None:
    async def talking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start() + start())
        writer.write_eof()
        assert [(await answered(reader))[0] for _ in range(2)] == [202, 202]
        assert await reader.read() == b""

    assert len(talk(talking)) == 2


def test_many_requests_in_one_go_are_all_answered_though_nobody_reads_yet() -> None:
    """More than is held at once, of answers as of requests: each side waits for the other, and neither for ever."""
    asked = b"GET /openapi.json HTTP/1.1\r\nhost: h\r\nx-pad: %b\r\n\r\n" % (b"a" * 4000)

    async def talking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(asked * 1000 + start())
        await asyncio.sleep(0.3)
        assert {(await answered(reader))[0] for _ in range(1000)} == {200}
        assert (await answered(reader))[0] == 202

    assert len(talk(talking)) == 1


@pytest.mark.parametrize(
    "odd",
    [
        b"POST /rollout HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n13\r\n%b\r\n0\r\n\r\n" % START,
        start(extra=b"expect: 100-continue\r\n"),
        start(extra=b"x-odd: \xe4\r\n"),
    ],
)
def test_what_is_not_plain_is_answered_by_hypercorn_on_the_same_connection(odd: bytes) -> None:
    async def talking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start() + odd[:30])
        assert (await answered(reader))[0] == 202
        writer.write(odd[30:])
        if b"expect" in odd:
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 \r\n\r\n"
        assert (await answered(reader))[0] == 202
        writer.write(start())
        assert (await answered(reader))[0] == 202

    assert len(talk(talking)) == 3


def test_what_odd_requests_follow_leaves_before_their_answer() -> None:
    """Answers of one turn are collected; another writer takes the connection over and must not overtake them."""
    odd = start(extra=b"x-odd: \xe4\r\n")

    async def talking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"GET /health HTTP/1.1\r\nhost: h\r\n\r\n" + start() + odd)
        assert [(await answered(reader))[0] for _ in range(3)] == [200, 202, 202]

    assert len(talk(talking)) == 2


def test_the_last_request_of_a_connection_is_answered_whole_before_it_closes() -> None:
    async def one(port: int) -> tuple[list[int], bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(start() * 2)
        statuses = [(await answered(reader))[0] for _ in range(2)]
        rest = await reader.read()
        writer.close()
        await writer.wait_closed()
        return statuses, rest

    async def main() -> list[tuple[list[int], bytes]]:
        app = served.make_app(served.FakeEngine())
        async with served.serving(app, keep_alive_max_requests=2) as port, asyncio.timeout(10):
            return await asyncio.gather(*[one(port) for _ in range(40)])  # many in one turn, and each for itself

    assert asyncio.run(main()) == [([202, 202], b"")] * 40


def test_a_body_that_does_not_come_is_refused_and_ends_the_connection() -> None:
    async def talking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start()[:-3])
        assert (await answered(reader))[0] == 408
        assert await reader.read() == b""

    assert talk(talking) == []


def test_who_says_nothing_is_hung_up_on() -> None:
    async def talking(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.read() == b""  # after the two seconds that the test server gives

    assert talk(talking) == []


def test_a_burst_of_connections_is_taken_at_once() -> None:
    answers: list[int] = []

    async def one(port: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(start())
        answers.append((await answered(reader))[0])
        writer.close()
        await writer.wait_closed()

    async def main() -> None:
        async with served.serving(served.make_app(served.FakeEngine())) as port, asyncio.timeout(10):
            await asyncio.gather(*[one(port) for _ in range(300)])

    asyncio.run(main())
    assert answers == [202] * 300


@pytest.mark.parametrize("length", [300, 700])
def test_a_head_is_as_long_as_hypercorns_setting_allows(length: int) -> None:
    """Also one that comes whole, which the short way could take."""
    engine = served.FakeEngine()

    async def main() -> None:
        async with served.serving(served.make_app(engine), h11_max_incomplete_size=500) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(start(extra=b"x-long: %b\r\n" % (b"a" * length)))
            async with asyncio.timeout(10):
                line = await reader.readline()
            assert int(line.split()[1]) == (202 if length == 300 else 431)
            writer.close()

    asyncio.run(main())
    assert len(engine.started) == (length == 300)
