"""The HTTP face of the server over real sockets: keys, bodies, routes. Traps are numbered as in the reference."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.serve.http.access import Access
from runner.serve.http.body import BodyLimits

_SPEC = importlib.util.spec_from_file_location("serve_served", Path(__file__).with_name("served.py"))
assert _SPEC is not None and _SPEC.loader is not None
served = importlib.util.module_from_spec(_SPEC)
sys.modules["serve_served"] = served
_SPEC.loader.exec_module(served)

JSON = b"content-type: application/json\r\n"


class Wire:
    """One connection, spoken to in bytes."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def __aenter__(self) -> Wire:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def ask(
        self, line: str, body: bytes | None = None, headers: bytes = JSON, length: int | None = None
    ) -> tuple[int, dict[str, str], Any]:
        head = f"{line} HTTP/1.1\r\nhost: x\r\n".encode() + headers
        if body is not None:
            head += b"content-length: %d\r\n" % (len(body) if length is None else length)
        self.writer.write(head + b"\r\n" + (body or b""))
        return await self.answer(line.startswith("HEAD"))

    async def answer(self, bodiless: bool = False) -> tuple[int, dict[str, str], Any]:
        async with asyncio.timeout(5):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:-2])}
            size = 0 if bodiless else int(headers["content-length"])
            text = await self.reader.readexactly(size)
        is_json = headers.get("content-type") == "application/json" and text
        return int(head[0].split()[1]), headers, json.loads(text) if is_json else text


def run(test: Callable[[Wire, Any], Awaitable[None]], key: str | None = None, **options: Any) -> Any:
    """Run `test` on one connection to a server, which must still be well after it; gives its engine."""
    engine = served.FakeEngine(options.pop("pause", 0.0))
    faults = options.pop("faults", 0)
    app = served.make_app(engine, key, **options)

    async def main() -> None:
        async with served.serving(app) as port:
            async with Wire(port) as wire:
                await test(wire, engine)
            async with Wire(port) as wire:
                assert (await wire.ask("GET /health"))[0] == 200

    asyncio.run(main())
    assert app.faults == faults
    return engine


def test_a_start_is_accepted_on_both_paths_and_the_connection_goes_on() -> None:
    async def test(wire: Wire, engine: Any) -> None:
        for path in ("/rollout", "/v1/rollout/init"):
            status, headers, body = await wire.ask(f"POST {path}", b'{"rollout_id":"r"}')
            assert (status, body) == (202, {})
            assert headers["x-request-id"] and headers["date"].endswith("GMT") and "server" not in headers
        assert len(engine.started) == 2

    run(test)


@pytest.mark.parametrize(
    ("given", "status"),
    [
        (b"", 401),
        (b"authorization: Bearer k\xc3\xa9y\r\n", 401),  # trap 55: no 500
        (b"authorization: Bearer secret\r\n", 202),
        (b"authorization: bearer      secret \r\n", 202),  # trap 57
        (b"authorization: secret\r\n", 202),
        (b"authorization: Basic secret\r\n", 401),
        (b"authorization: Bearer\r\n", 401),
        (b"authorization: Bearer secret\r\nauthorization: Bearer other\r\n", 401),
    ],
)
def test_the_key_is_asked_for_before_the_body_is_read(given: bytes, status: int) -> None:
    async def test(wire: Wire, engine: Any) -> None:
        found, headers, body = await wire.ask("POST /rollout", b"{}", JSON + given)
        assert found == status
        if status == 401:
            assert body == {"detail": "Invalid or missing API key"} and "www-authenticate" not in headers
            # trap 54: a bad body without the key tells nothing, and one that never comes is not waited for.
            assert (await wire.ask("POST /rollout", b"[", JSON + given))[0] == 401

    run(test, key="secret")


def test_what_the_key_protects() -> None:
    async def test(wire: Wire, engine: Any) -> None:
        for path, status in [("/health", 200), ("/metrics", 200), ("/openapi.json", 200), ("/docs", 200)]:
            assert (await wire.ask(f"GET {path}"))[0] == status
        for line in ("GET /platform/health", "GET /rollout/a/status", "POST /rollout/cancel", "POST /v1/rollout/init"):
            assert (await wire.ask(line, b"{}"))[0] == 401
        status, _, body = await wire.ask("GET /platform/health", headers=b"authorization: secret\r\n")
        assert (status, body["status"]) == (200, "healthy")

    run(test, key="secret")


def test_a_page_in_a_browser_starts_nothing_without_a_key() -> None:
    """Any page that somebody reads can send requests to this machine; browsers tell whose they are."""
    evil = b"origin: https://evil.example\r\n"

    async def test(wire: Wire, engine: Any) -> None:
        for line in ("POST /rollout", "POST /rollout/cancel", "GET /rollout/a/status"):
            assert (await wire.ask(line, b'{"rollout_id":"r"}', JSON + evil))[0] == 403
        assert (await wire.ask("GET /health", headers=evil))[0] == 200
        assert (await wire.ask("POST /rollout", b'{"rollout_id":"r"}'))[0] == 202
        assert len(engine.started) == 1 and engine.selectors == []

    run(test)

    async def with_the_key(wire: Wire, engine: Any) -> None:
        key = b"authorization: secret\r\n"
        assert (await wire.ask("POST /rollout", b'{"rollout_id":"r"}', JSON + evil))[0] == 401
        assert (await wire.ask("POST /rollout", b'{"rollout_id":"r"}', JSON + evil + key))[0] == 202

    run(with_the_key, key="secret")


@pytest.mark.parametrize("key", ["", " ", "a\nb", " a"])
def test_a_key_that_locks_everybody_out_is_no_key(key: str) -> None:  # trap 56
    with pytest.raises(ValueError, match="key"):
        Access(key)


@pytest.mark.parametrize(
    ("body", "headers", "words"),
    [
        (b"", JSON, "not JSON"),
        (b"[]", JSON, "must be a JSON object"),
        (b'"x"', JSON, "must be a JSON object"),
        (b"{", JSON, "not JSON"),
        (b'{"a":"\xff"}', JSON, "not UTF-8"),
        ('{"a":1}'.encode("utf-16"), JSON, "not UTF-8"),
        (b"[" * 50_000, JSON, "nested too deeply"),
        (b'{"a":' * 900 + b"1" + b"}" * 900 + b",", JSON, ""),
        (b'{"a":' + b"1" * 5000 + b"}", JSON, "too long"),
        (b"{}", b"content-type: text/plain\r\n", "application/json"),
        (b'{"rollout_id":"deep"}', JSON, "nested too deeply"),
        (b'{"rollout_id":"nan"}', JSON, ""),
    ],
)
def test_a_body_that_cannot_be_read_is_422(body: bytes, headers: bytes, words: str) -> None:
    async def test(wire: Wire, engine: Any) -> None:
        for path in ("/rollout", "/v1/rollout/init"):
            status, _, answer = await wire.ask(f"POST {path}", body, headers)
            assert status == 422 and words in json.dumps(answer["detail"])
        assert (await wire.ask("POST /rollout", b"{}"))[0] == 202  # on the same connection

    run(test)


@pytest.mark.parametrize(
    "body", [b'{"a":NaN,"b":-Infinity}', b'{"a":1,"a":2}', b'{"a":"\\ud83d"}', b'\xef\xbb\xbf{"a":1}', b'{"a":1e999}']
)
def test_what_other_servers_take_is_taken(body: bytes) -> None:
    async def test(wire: Wire, engine: Any) -> None:
        for headers in (JSON, b"content-type: application/vnd.x+json; charset=utf-8\r\n", b""):
            assert (await wire.ask("POST /rollout", body, headers))[0] == 202

    run(test)


def test_compressed_bodies_are_415() -> None:
    async def test(wire: Wire, engine: Any) -> None:
        status, headers, _ = await wire.ask("POST /rollout", b"\x1f\x8b", JSON + b"content-encoding: gzip\r\n")
        assert (status, headers["accept-encoding"]) == (415, "identity")

    run(test)


def test_a_body_that_is_too_large_is_413_however_it_is_sent() -> None:
    async def test(wire: Wire, engine: Any) -> None:
        assert (await wire.ask("POST /rollout", b"x" * 2000, JSON))[0] == 413
        chunks = b"400\r\n" + b"x" * 1024 + b"\r\n"
        head = b"POST /rollout HTTP/1.1\r\nhost: x\r\n" + JSON + b"transfer-encoding: chunked\r\n\r\n"
        wire.writer.write(head + chunks * 4 + b"0\r\n\r\n")
        assert (await wire.answer())[0] == 413
        assert (await wire.ask("POST /rollout", b"{}"))[0] == 202  # both were read to their end
        # Declared and never sent: the answer does not wait for it.
        assert (await wire.ask("POST /rollout", b"", JSON, length=10**9))[0] == 413

    run(test, limits=BodyLimits(1000, 5.0))


def test_a_body_that_comes_too_slowly_is_408() -> None:
    async def test(wire: Wire, engine: Any) -> None:
        status, headers, _ = await wire.ask("POST /rollout", b"{", JSON, length=2)
        assert (status, headers["connection"]) == (408, "close")

    run(test, limits=BodyLimits(1000, 0.2))


def test_many_small_chunks_with_a_wrong_key_do_not_hold_the_connection() -> None:
    """Hypercorn's own bounded queue would wait for ever for an app that has answered already."""

    async def test(wire: Wire, engine: Any) -> None:
        head = b"POST /rollout HTTP/1.1\r\nhost: x\r\n" + JSON + b"transfer-encoding: chunked\r\n\r\n"
        wire.writer.write(head + b"1\r\nx\r\n" * 1000 + b"0\r\n\r\n")
        assert (await wire.answer())[0] == 401
        assert (await wire.ask("GET /health"))[0] == 200

    run(test, key="secret")


def test_who_hangs_up_in_the_middle_is_no_fault() -> None:
    async def test(wire: Wire, engine: Any) -> None:
        wire.writer.write(b"POST /rollout HTTP/1.1\r\nhost: x\r\n" + JSON + b"content-length: 100\r\n\r\n{")
        await wire.writer.drain()
        wire.writer.transport.abort()
        await asyncio.sleep(0.05)
        assert engine.started == []

    run(test)


def test_pipelined_requests_are_answered_in_their_order() -> None:
    async def test(wire: Wire, engine: Any) -> None:
        one = b"POST /rollout HTTP/1.1\r\nhost: x\r\n" + JSON + b"content-length: 2\r\n\r\n{}"
        wire.writer.write(one + b"GET /rollout/a/status HTTP/1.1\r\nhost: x\r\n\r\n" + one)
        assert [(await wire.answer())[0] for _ in range(3)] == [202, 200, 202]

    run(test)


@pytest.mark.parametrize(
    ("path", "name"),
    [("a%2Fb", "a/b"), ("a/b", "a/b"), ("%F0%9F%A6%8A", "🦊"), ("%00", "\0"), ("..", ".."), ("a+b%20c", "a+b c")],
)
def test_the_status_of_any_id_is_asked_by_its_percent_encoded_name(path: str, name: str) -> None:  # trap 90
    async def test(wire: Wire, engine: Any) -> None:
        status, _, body = await wire.ask(f"GET /rollout/{path}/status")
        assert (status, body["rollout_id"], body["status"]) == (200, name, "unknown")

    run(test)


def test_ids_that_are_none_and_paths_that_are_none_are_404() -> None:
    async def test(wire: Wire, engine: Any) -> None:
        for path in ("/rollout//status", "/rollout/%ff/status", "/nowhere", "/rollout/", "/platform/health"):
            status, _, body = await wire.ask(f"GET {path}")
            assert (status, body) == (404, {"detail": "Not Found"}), path

    run(test)


def test_other_methods_are_405_and_head_is_get_without_a_body() -> None:
    async def test(wire: Wire, engine: Any) -> None:
        status, headers, _ = await wire.ask("GET /rollout")
        assert (status, headers["allow"]) == (405, "POST")
        status, headers, _ = await wire.ask("DELETE /health")
        assert (status, headers["allow"]) == (405, "GET, HEAD")
        status, headers, _ = await wire.ask("HEAD /health")
        assert status == 200 and int(headers["content-length"]) > 2
        assert (await wire.ask("GET http://x/health"))[0] == 200

    run(test)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"ids": ["a", "b"]}, 200),
        ({"ids": []}, 200),
        ({"prefix": ""}, 200),  # trap 89
        ({"all": True}, 200),
        ({"all": True, "ids": None, "prefix": None}, 200),
        ({"ids": ["a"], "all": False}, 200),
        ({}, 422),
        ({"all": False}, 422),
        ({"ids": [], "prefix": "a"}, 422),
        ({"ids": ["a"], "all": True}, 422),
    ],
)
def test_a_cancel_names_exactly_one_selector(body: dict[str, Any], status: int) -> None:
    async def test(wire: Wire, engine: Any) -> None:
        found, _, answer = await wire.ask("POST /rollout/cancel", json.dumps(body).encode())
        assert found == status
        if status == 422:
            assert answer == {"detail": "pass exactly one selector: ids, prefix, or all"}
        else:
            assert answer == {"dispositions": dict.fromkeys(body.get("ids") or (), "not_found")}

    run(test)


@pytest.mark.parametrize("body", [{"ids": "a"}, {"ids": [1]}, {"prefix": 3}, {"all": "yes"}])
def test_a_cancel_of_the_wrong_type_names_its_field(body: dict[str, Any]) -> None:
    async def test(wire: Wire, engine: Any) -> None:
        status, _, answer = await wire.ask("POST /rollout/cancel", json.dumps(body).encode())
        assert status == 422 and answer["detail"][0]["loc"] == ["body", next(iter(body))]
        assert engine.selectors == []

    run(test)


def test_refusals_of_the_engine_keep_their_headers_and_faults_are_500_once_each() -> None:
    async def test(wire: Wire, engine: Any) -> None:
        status, headers, body = await wire.ask("POST /rollout", b'{"rollout_id":"full"}')
        assert (status, headers["retry-after"]) == (429, "7") and body["detail"].startswith("rollout queue is full")
        status, headers, body = await wire.ask(
            "POST /rollout", b'{"rollout_id":"boom"}', JSON + b"x-request-id: me-1\r\n"
        )
        assert status == 500 and "me-1" in body["detail"] and headers["x-request-id"] == "me-1"

    run(test, faults=1)


def test_a_state_file_that_cannot_be_read_is_no_fault_of_the_program() -> None:
    """503, and whose move it is stands in the server's log: the file's name is nobody else's business."""

    async def test(wire: Wire, engine: Any) -> None:
        status, headers, body = await wire.ask("GET /rollout/unreadable/status")
        assert (status, headers["retry-after"]) == (503, "5") and "rollouts.db" not in body["detail"]

    run(test)


def test_an_insane_request_id_is_replaced() -> None:
    async def test(wire: Wire, engine: Any) -> None:
        for sent in (b"x" * 129, b"a b", b"\xff"):
            _, headers, _ = await wire.ask("GET /health", headers=b"x-request-id: " + sent + b"\r\n")
            assert headers["x-request-id"].encode("latin-1") != sent and len(headers["x-request-id"]) < 40

    run(test)


def test_a_server_that_drains_refuses_starts_alone() -> None:
    async def test(wire: Wire, engine: Any) -> None:
        engine.draining = True
        assert (await wire.ask("GET /rollout/a/status"))[0] == 200
        status, headers, _ = await wire.ask("POST /rollout", b"{}")
        assert (status, headers["connection"]) == (503, "close") and int(headers["retry-after"]) > 0

    run(test)


def test_health_carries_the_name_that_a_supervisor_gave() -> None:
    async def test(wire: Wire, engine: Any) -> None:
        _, headers, body = await wire.ask("GET /health")
        assert body["instance_id"] == headers["x-osmosis-rollout-instance-id"] == "i-7"
        assert body["concurrency"] == {"max_concurrent": 4, "queued": 0, "running": 0}

    run(test, instance_id="i-7")


def test_the_document_describes_every_route_and_the_page_needs_no_network() -> None:
    async def test(wire: Wire, engine: Any) -> None:
        _, _, api = await wire.ask("GET /openapi.json")
        assert (
            api["openapi"] == "3.1.0" and "/rollout" in api["paths"] and "/rollout/{rollout_id}/status" in api["paths"]
        )
        for path, operations in api["paths"].items():
            for method, operation in operations.items():
                line = f"{method.upper()} {path.replace('{rollout_id}', 'a')}"
                body = b"{}" if method == "post" else None
                status = (await wire.ask(line, body))[0]
                assert str(status) in operation["responses"], line
        page = (await wire.ask("GET /docs"))[2]
        assert b"POST /rollout" in page and b"http://" not in page and b"https://" not in page

    run(test)


@settings(max_examples=25)
@given(
    st.binary(max_size=200)
    | st.from_regex(rb"(GET|POST) /[!-~]{0,20} HTTP/1\.[01]\r\n([a-z-]{1,9}: [!-~]{0,9}\r\n){0,4}\r\n")
)
def test_no_bytes_make_a_fault(sent: bytes) -> None:
    async def test(wire: Wire, engine: Any) -> None:
        wire.writer.write(sent)
        wire.writer.write_eof()
        async with asyncio.timeout(5):
            answer = await wire.reader.read(65536)
        assert b"HTTP/1.1 5" not in answer

    run(test)


def test_http2_by_prior_knowledge_is_answered() -> None:
    async def test(wire: Wire, engine: Any) -> None:
        from h2.config import H2Configuration
        from h2.connection import H2Connection
        from h2.events import ResponseReceived

        h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        h2.initiate_connection()
        fields = [(":method", "POST"), (":path", "/rollout"), (":authority", "x"), (":scheme", "http")]
        h2.send_headers(1, fields)
        h2.send_data(1, b"{}", end_stream=True)
        wire.writer.write(h2.data_to_send())
        async with asyncio.timeout(5):
            while True:
                for event in h2.receive_data(await wire.reader.read(65536)):
                    if isinstance(event, ResponseReceived):
                        assert dict(event.headers)[":status"] == "202"
                        return

    run(test)
