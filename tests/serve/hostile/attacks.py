"""What a hostile, broken or merely old client may send: bytes, and how its connection ends."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

WRONG: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, -(2**70), 10**400, 1.5, 1e308, float("nan"), float("inf"), float("-inf"),
    "", " ", "x", "\0", "\ud83d", "é", "\U0001f600" * 300, "x" * 5000, "../../etc/passwd", "a/b", "%00", "{{ 7 * 7 }}",
    "http://", "ftp://h/x", "http://127.0.0.1:1/#f", "http://u:p@h/", "http://h/?q", "//h", "http://[::1",
    "http://h:99999",
    [], [None], [[]], [1, "a"], ["\ud83d"], [{}], [{"role": 1}], [{"role": "user"}], [{"content": {"a": [None]}}],
    {}, {"": ""}, {"a": None}, {"\ud83d": "\ude00"}, {"stop": {}}, {"temperature": "hot"}, {"messages": 1, "tools": 2},
)  # fmt: skip
"""Each is put into every field of every start body."""


@dataclass(frozen=True, slots=True)
class Attack:
    """`pieces` are sent one after the other with a short pause. `end` says what happens then.

    read: wait for the server to end. half: close our half, then wait. close, reset: at once. hold: stay, say nothing.
    """

    name: str
    pieces: tuple[bytes, ...]
    end: str = "read"


def head(line: str, *more: str, key: str, close: bool = True) -> bytes:
    lines = [line, "host: x", f"authorization: Bearer {key}", *(["connection: close"] if close else []), *more]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def post(path: str, body: bytes, *more: str, key: str) -> bytes:
    return head(f"POST {path} HTTP/1.1", "content-type: application/json", f"content-length: {len(body)}", *more,
                key=key) + body  # fmt: skip


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def fields(key: str, starts: list[tuple[str, dict[str, Any]]]) -> Iterator[Attack]:
    """Every field of every body, with every wrong value, and without it."""
    for path, body in starts:
        for name in [*body, "llm_api_key", "controller_api_key", "api_key", "idempotency_key", "extra_fields", "ids",
                     "prefix", "tool_server_url"]:  # fmt: skip
            without = {each: value for each, value in body.items() if each != name}
            yield Attack(f"{path} without {name}", (post(path, dumped(without), key=key),))
            for wrong in WRONG:
                sent = dumped({**body, name: wrong})
                yield Attack(f"{path} {name}={str(wrong)[:30]!r}", (post(path, sent, key=key),))


def bodies(key: str, starts: list[tuple[str, dict[str, Any]]]) -> Iterator[Attack]:
    """Bodies that are no JSON object, or not whole, or not what their headers say."""
    for path, body in starts:
        good = dumped(body)
        for raw in (b"", b"{", b"[]", b"null", b"1", b'"x"', b"\xff\xfe", b"{\"a\": \xc3\x28}", b"\xef\xbb\xbf" + good,
                    good.decode().encode("utf-16"), good[:-1], good + b"x", good * 2, b"\0" * 100,
                    b"[" * 30000, b'{"a":' * 10000 + b"1" + b"}" * 10000,
                    b'{"metadata":' + b"[" * 5000 + b"]" * 5000 + b"}",
                    b'{"rollout_id":"a","rollout_id":"b","rollout_id":1}', b'{"max_turns":' + b"9" * 6000 + b"}",
                    b'{"agent_timeout_sec":NaN}', b'{"x":-Infinity}', b'{"x":1e999999}', b'{"x":"\\ud83d"}',
                    b'{"x":"\n"}',
                    dumped({**body, "metadata": {"deep": _deep(300)}}), dumped({**body,
                    "metadata": {"deep": _deep(900)}}),
                    gzip.compress(good), b" " * 70000 + good, b"x" * 200000):  # fmt: skip
            yield Attack(f"{path} body {raw[:20]!r}", (post(path, raw, key=key),))
            yield Attack(
                f"{path} half of body {raw[:20]!r}", (post(path, raw, key=key)[: -len(raw) // 2 or None],), "half"
            )
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
                             "application/",
                     "application/json; charset=utf-16", "é", ";", "application/problem+json", "x" * 5000):  # fmt: skip
            yield Attack(f"{path} as {kind[:20]}", (head(f"POST {path} HTTP/1.1", f"content-type: {kind}",
                         f"content-length: {len(good)}", key=key) + good,))  # fmt: skip
        for encoding in ("gzip", "br", "deflate", "identity", "gzip, gzip", "\xff"):
            packed = gzip.compress(good) if encoding == "gzip" else good
            yield Attack(f"{path} {encoding!r} body", (post(path, packed, f"content-encoding: {encoding}", key=key),))
        for length in (
            "0",
            "1",
            str(len(good) - 1),
            str(len(good) + 1),
            "-1",
            "+5",
            "0x10",
            "1e3",
            "9" * 30,
            "",
            "5, 5",
            "5, 6",
        ):
            raw = head(f"POST {path} HTTP/1.1", "content-type: application/json", f"content-length: {length}", key=key)
            for end in ("half", "read", "reset"):
                yield Attack(f"{path} length {length!r} {end}", (raw + good,), end)
        for chunks in (b"zz\r\nabc\r\n0\r\n\r\n", b"5\r\nab", b"ffffffffffffffffff\r\nx", b"-1\r\nx\r\n",
                             b"5;" + b"e" * 70000 + b"\r\n",
                       b"1\r\n{\r\n1\r\n}\r\n0\r\nbad trailer\r\n\r\n", b"7fffffff\r\n" + b"x" * 100000,
                       b"0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
                       b"2\r\n{}XX0\r\n\r\n", b"\r\n\r\n\r\n", b"1\n{\n", b"0x2\r\n{}\r\n0\r\n\r\n",
                       b"1\r\n{\r\n" * 3000):  # fmt: skip
            raw = head(f"POST {path} HTTP/1.1", "content-type: application/json", "transfer-encoding: chunked", key=key)
            yield Attack(f"{path} chunks {chunks[:12]!r}", (raw + chunks,), "half")
            yield Attack(f"{path} slow chunks {chunks[:12]!r}", (raw, chunks[:3], chunks[3:]), "close")


def smuggled(key: str, starts: list[tuple[str, dict[str, Any]]]) -> Iterator[Attack]:
    """Two lengths, and a second request inside."""
    inner = b"POST /rollout/cancel HTTP/1.1\r\nhost: x\r\ncontent-length: 12\r\n\r\n" + b'{"all":true}'
    for path, _ in starts:
        for more in (("transfer-encoding: chunked",), ("transfer-encoding: chunked", "transfer-encoding: identity"),
                     ("transfer-encoding : chunked",), ("transfer-encoding: xchunked",),
                     ("transfer-encoding: chunked, chunked",),
                     ("Transfer-Encoding:\tchunked",), (" transfer-encoding: chunked",),
                     ("x: y\n transfer-encoding: chunked",),
                     ("content-length: 0",), ("content-length: 6",), ("transfer-encoding: \x0bchunked",)):  # fmt: skip
            for length in (4, 6, len(inner)):
                raw = head(f"POST {path} HTTP/1.1", f"content-length: {length}", *more, key=key, close=False)
                yield Attack(f"smuggled {more[0]!r} {length}", (raw + b"0\r\n\r\n" + inner,), "half")


def heads(key: str) -> Iterator[Attack]:
    """Request lines, headers, methods and targets."""
    bearer = f"authorization: Bearer {key}"
    for line in ("", "GET", "GET /", "GET  / HTTP/1.1", "GET / HTTP/1.1 x", "GET / HTTP/9.9", "GET / HTTP/0.9",
                         "GET / HTTP/1.0",
                 "GET / http/1.1", "G\0T / HTTP/1.1", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
                 "PRI * HTTP/2.0", "\r\n\r\nGET / HTTP/1.1",
                 "GET /\x80 HTTP/1.1", "GET /\xff%ff HTTP/1.1", "é / HTTP/1.1", "GET\t/\tHTTP/1.1", "SSH-2.0-x",
                 "GET / HTTP/1.1\0"):  # fmt: skip
        raw = f"{line}\r\nhost: x\r\n\r\n".encode("latin-1")
        for end in ("half", "read", "close"):
            yield Attack(f"line {line[:20]!r} {end}", (raw,), end)
    for more in ("a: b\r\n c", "a : b", ": b", "a", "a\0: b", "a: \0", "a: \r", "é: é", "a: \xff\xfe", "a: b\nc: d",
                         "x" * 70000, "a: " + "b" * 70000,
                 "\r\n".join(f"h{each}: {each}" for each in range(3000)), "host: y", "host:", "content-length: 3",
                 "expect: 100-continue",
                 "expect: what",
                 "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: x",
                 "connection: upgrade\r\nupgrade: websocket",
                 "connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__",
                 "connection: upgrade\r\nupgrade: h2c\r\nhttp2-settings: !!!", "connection: upgrade\r\nupgrade: h2c",
                 "upgrade: h2c\r\nhttp2-settings: A",
                 "connection: upgrade\r\nupgrade: h2c\r\nhttp2-settings: " + "AAAAAAAAAA==",
                 "authorization: Bearer x\r\nauthorization: Bearer y", "authorization: \xff\xff",
                 "authorization: Basic eDp5", "range: bytes=0-0",
                 "x-request-id: " + "\t" * 10, "x-request-id: a\x7fb", "accept: \xff",
                 "accept: application/openmetrics-text; version=9", "te: trailers"):  # fmt: skip
        for path in ("/health", "/metrics", "/rollout/a/status", "/nothing"):
            raw = f"GET {path} HTTP/1.1\r\nhost: x\r\n{bearer}\r\n{more}\r\n\r\n".encode("latin-1")
            yield Attack(f"{path} header {more[:25]!r}", (raw,), "half")
    for path in ("/health", "/rollout", "/v1/rollout/init", "/rollout/cancel", "/rollout/a/status", "/docs", "*", "/x"):
        for method in (
            "GET",
            "HEAD",
            "OPTIONS",
            "PUT",
            "PATCH",
            "DELETE",
            "TRACE",
            "CONNECT",
            "PRI",
            "get",
            "X" * 300,
            "M-SEARCH",
            "!",
        ):
            yield Attack(f"{method[:9]} {path}", (head(f"{method} {path} HTTP/1.1", key=key),))
    for target in ("http://x/health", "http://x", "https://other:1/rollout/a/status", "x", "x:443", "?", "//health",
                         "/health/", "/./health", "/../health",
                   "/rollout/%2e%2e/status", "/rollout/a%2Fb/status", "/rollout/%00/status", "/rollout/%ff/status",
                   "/rollout/%/status", "/rollout/%zz/status",
                   "/rollout/%ed%a0%80/status", "/rollout//status", "/rollout/" + "a" * 65000 + "/status",
                   "/" + "a" * 65000, "/%" * 9000, "/health?" + "q" * 60000,
                   "/health#f", "/health%00", "/HEALTH", "/rollout/%F0%9F%98%80/status", "http://[::1/health",
                   "ftp://x/health", "http:///health",
                   "/rollout/\"<script>/status", "/rollout/{rollout_id}/status",
                   "/rollout/a/status/status"):  # fmt: skip
        yield Attack(f"target {target[:30]!r}", (head(f"GET {target} HTTP/1.1", key=key),))
        yield Attack(f"posted to {target[:30]!r}", (post(target, b"{}", key=key),))


def connections(key: str, starts: list[tuple[str, dict[str, Any]]]) -> Iterator[Attack]:
    """Connections that end oddly, or never say anything, or say too much."""
    health = head("GET /health HTTP/1.1", key=key, close=False)
    last = head("GET /health HTTP/1.1", key=key)
    for end in ("hold", "close", "reset", "half"):
        yield Attack(f"nothing {end}", (), end)
        yield Attack(f"a byte {end}", (b"G",), end)
        yield Attack(f"half a head {end}", (health[:20],), end)
        yield Attack(f"a drip of a head {end}", tuple(health[at : at + 9] for at in range(0, 45, 9)), end)
        yield Attack(f"whole and {end}", (last,), end)
        yield Attack(f"pipelined {end}", (health * 20 + last,), end)
        yield Attack(f"pipelined rubbish {end}", (health * 3 + b"\0\1\2" * 100,), end)
        for path, body in starts:
            raw = post(path, dumped(body) + b" " * 3000, key=key)
            yield Attack(f"{path} cut {end}", (raw[: len(raw) - 1500],), end)
            yield Attack(f"{path} drip {end}", (raw[:200], raw[200:210], raw[210:220]), end)
            yield Attack(
                f"{path} expects {end}", (post(path, b"", "expect: 100-continue", key=key)[:-2] + b"\r\n",), end
            )
            yield Attack(f"{path} without a key {end}", (post(path, dumped(body), key="wrong"),), end)
    frame = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for rest in (b"", b"\0" * 9, b"\0\0\0\4\0\0\0\0\0", b"\xff" * 200,
                         b"\0\0\0\4\0\0\0\0\0" + b"\0\0\5\1\5\0\0\0\1\x82\x86\x84\x41\x01",
                 b"\0\0\0\4\0\0\0\0\0" + b"\0\0\1\1\5\0\0\0\1\x82",
                 b"\0\0\0\4\0\0\0\0\0" + b"\0\0\4\3\0\0\0\0\1\0\0\0\0" * 50):  # fmt: skip
        for end in ("half", "close", "hold"):
            yield Attack(f"http/2 {rest[:12]!r} {end}", (frame + rest,), end)


def oversized(key: str, starts: list[tuple[str, dict[str, Any]]], chance: random.Random) -> Iterator[Attack]:
    """More than any limit allows, told beforehand or not, with and without a good start in it. Without end."""
    while True:
        path, body = starts[chance.randrange(len(starts))]
        size, good = chance.randrange(66_000, 300_000), dumped(body)
        padded = good[:-1] + b', "padding": "' + b"x" * size + b'"}'
        chunked = head(f"POST {path} HTTP/1.1", "content-type: application/json", "transfer-encoding: chunked", key=key)
        told = head(f"POST {path} HTTP/1.1", f"content-length: {size * 10**6}", key=key)
        yield from (
            Attack(f"{path} body of {size}", (post(path, padded, key=key),)),
            Attack(f"{path} blanks before a body", (post(path, b" " * size + good, key=key),)),
            Attack(f"{path} chunks of {size}", (chunked + b"%x\r\n%b\r\n" % (size, b"x" * size) + b"0\r\n\r\n",)),
            Attack(f"{path} terabytes are told", (told + b"x" * 70_000,), "close"),
            Attack(f"{path} head of {size}", (head(f"POST {path} HTTP/1.1", "a: " + "b" * size, key=key),)),
            Attack(f"{path} metadata of 50,000", (post(path, dumped({**body, "metadata": {"a": "x" * 50_000}}),
                                                       key=key),)),
        )  # fmt: skip


def slow(key: str, starts: list[tuple[str, dict[str, Any]]], chance: random.Random) -> Iterator[Attack]:
    """Piece by piece: whole in the end, or broken off, or never finished. Without end."""
    while True:
        path, body = starts[chance.randrange(len(starts))]
        whole = post(path, dumped({**body, "rollout_id": [chance.random()]}), key=key)
        cut = chance.randrange(20, len(whole) - 10)
        yield from (
            Attack(f"{path} in pieces", _pieces(whole, 5)),
            Attack(f"{path} in pieces, half-closed", _pieces(whole[:cut], 4), "half"),
            Attack(f"{path} in pieces, gone", _pieces(whole[:cut], 4), "close"),
            Attack(f"{path} never finished", _pieces(whole[:cut], 2)),
        )


def _pieces(raw: bytes, number: int) -> tuple[bytes, ...]:
    step = len(raw) // number + 1
    return tuple(raw[at : at + step] for at in range(0, len(raw), step))


def everything(key: str, starts: list[tuple[str, dict[str, Any]]], number: int, seed: int) -> list[Attack]:
    """So many attacks, shuffled: every one at least once where they fit; of the rest a third is too large, a third
    slow, and a third has random bytes changed."""
    chance = random.Random(seed)
    known = [*fields(key, starts), *bodies(key, starts), *smuggled(key, starts), *heads(key)]
    odd = list(connections(key, starts))
    known += odd
    chance.shuffle(known)
    room = max(0, number - len(known))
    found = [*known[:number], *islice(oversized(key, starts, chance), room // 3),
             *islice(slow(key, starts, chance), room // 3)]  # fmt: skip
    more = islice(cycle([each for each in known if each.end != "hold"]), max(0, number - len(found)))
    found += [_changed(each, chance) for each in more]
    chance.shuffle(found)
    return found


def _changed(attack: Attack, chance: random.Random) -> Attack:
    """The same with a few bytes changed, lost or doubled."""
    raw = bytearray(b"".join(attack.pieces))
    for _ in range(chance.randint(1, 4)):
        if not raw:
            break
        at = chance.randrange(min(len(raw), 400))
        what = chance.randrange(3)
        raw[at : at + 1] = (bytes([chance.randrange(256)]), b"", raw[at : at + 1] * 2)[what]
    return Attack(f"{attack.name}, changed", (bytes(raw),), "half" if attack.end == "read" else attack.end)


def _deep(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value
