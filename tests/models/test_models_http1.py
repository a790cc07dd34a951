"""The response parser: however the bytes are cut, the same answer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.models.http1_parser import ProtocolError, ResponseParser, TooLargeError, brief

HEAD = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nX-A: b\r\n"


def chunked(body: bytes, sizes: list[int]) -> bytes:
    parts, start = [], 0
    for size in sizes:
        parts.append(body[start : start + size])
        start += size
    parts.append(body[start:])
    return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts if part) + b"0\r\nT: 1\r\n\r\n"


def feed(parser: ResponseParser, data: bytes, cuts: list[int]) -> bool:
    done, start = False, 0
    for cut in [*sorted(cut for cut in cuts if cut < len(data)), len(data)]:
        if cut > start:
            done = parser.feed(data[start:cut])
        start = cut
    return done


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300), st.lists(st.integers(1, 40), max_size=5), st.lists(st.integers(0, 500), max_size=9))
def test_any_cut_gives_the_same_body(body: bytes, sizes: list[int], cuts: list[int]) -> None:
    length = HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    for data in (length, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunked(body, sizes)):
        parser = ResponseParser(1000)
        assert feed(parser, data, cuts)
        assert parser.answer is not None
        assert (parser.answer.status, parser.answer.body, parser.answer.headers["x-a"]) == (200, body, "b")
        assert parser.reusable()
        parts: list[bytes] = []
        stream = ResponseParser(1000, lambda part, parts=parts: bool(parts.append(part)))  # type: ignore[misc]
        assert feed(stream, data.replace(b"X-A: b", b"Content-Type: text/event-stream"), cuts)
        assert b"".join(parts) == body


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200), st.lists(st.integers(0, 300), max_size=6))
def test_any_bytes_are_an_answer_or_refused(data: bytes, cuts: list[int]) -> None:
    for prefix in (
        b"",
        HEAD + b"\r\n",
        HEAD + b"transfer-encoding: chunked\r\n\r\n",
        HEAD + b"content-length: 9\r\n\r\n",
    ):
        parser = ResponseParser(100)
        try:
            feed(parser, prefix + data, [])
            parser.feed_eof()
        except ProtocolError:
            continue
        assert parser.answer is not None


def test_bodies_are_bounded() -> None:
    with pytest.raises(TooLargeError):
        ResponseParser(10).feed(HEAD + b"content-length: 11\r\n\r\n")
    with pytest.raises(TooLargeError):
        ResponseParser(10).feed(HEAD + b"transfer-encoding: chunked\r\n\r\n8\r\n12345678\r\n8\r\n12345678\r\n")


_LINES = st.sampled_from(
    [b"content-length: 2", b"Content-Length:2", b"content-length: 02", b"content-length: 3", b"content-length: x",
     b"date: now", b"x-a:", b"x a: b", b" folded", b"nocolon", b"connection: close", b"Transfer-Encoding: chunked",
     b"content-encoding: gzip", b"x: \xff"]
)  # fmt: skip
_FIRST_LINES = st.sampled_from(
    [b"HTTP/1.1 200 OK", b"HTTP/1.1 202", b"HTTP/1.1 204 ", b"HTTP/1.0 200 OK", b"HTTP/1.1 299x"]
)


@settings(max_examples=500, deadline=None)
@given(_FIRST_LINES, st.lists(_LINES, max_size=4), st.sampled_from([b"{}", b"{", b"{}{", b""]))
def test_a_brief_answer_is_what_the_parser_makes_of_it(first: bytes, lines: list[bytes], body: bytes) -> None:
    data = b"\r\n".join([first, *lines, b"", body])
    answer = brief(data, 1000)
    if answer is None:
        return
    parser = ResponseParser(1000)
    assert parser.feed(data) and parser.reusable() and parser.answer is not None
    assert (answer.status, answer.body, answer.whole) == (parser.answer.status, parser.answer.body, True)


def test_the_usual_acknowledgement_is_brief_and_a_part_of_it_is_not() -> None:
    data = b'HTTP/1.1 200 OK\r\ndate: now\r\ncontent-length: 15\r\nserver: x\r\n\r\n{"status":"ok"}'
    answer = brief(data, 15)
    assert answer is not None and (answer.status, answer.body) == (200, b'{"status":"ok"}')
    assert brief(data, 14) is None
    assert all(brief(data[:end], 15) is None for end in range(len(data)))
