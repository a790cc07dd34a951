"""TLS and HTTP/2 carry a start like plain HTTP/1.1 does, and who speaks them badly harms nobody."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hpack import Encoder

Tls = tuple[Path, Path, ssl.SSLContext]


@pytest.fixture(scope="module")
def served(serve: Callable[..., Any], controller: Any, certificate: Tls) -> Any:
    cert, key, _ = certificate
    return serve(
        *("--set", f'serve.hypercorn.certfile="{cert}"', "--set", f'serve.hypercorn.keyfile="{key}"'),
        *("--set", "serve.hypercorn.ssl_handshake_timeout=2", "--set", f'serve.allow_callbacks=["{controller.url}/*"]'),
    )


@pytest.fixture(scope="module")
def plain(serve: Callable[..., Any], controller: Any) -> Any:
    served = serve("--set", f'serve.allow_callbacks=["{controller.url}/*"]')
    assert served.ask("POST", *controller.start("before-http2"))[0] == 202  # what is opened once is no leak
    served.quiet()
    served.rested = served.steady()
    return served


def ask(served: Any, trust: Any, *starts: tuple[str, Any], http2: bool = True) -> list[httpx.Response]:
    with httpx.Client(http2=http2, verify=trust, base_url=served.url, trust_env=False) as client:
        client.headers["authorization"] = f"Bearer {served.KEY}"
        return [client.post(path, json=body) for path, body in starts] + [client.get("/health")]


def quiet(served: Any, trust: Any, controller: Any, names: list[str]) -> None:
    until = time.monotonic() + 10
    while not all(name in controller.verdicts for name in names):
        assert time.monotonic() < until
        time.sleep(0.02)
    (health,) = ask(served, trust)
    assert health.status_code == 200 and health.http_version == "HTTP/2"
    assert "Traceback" not in served.stderr() and "fault of the server" not in served.stderr()


@pytest.mark.parametrize("http2", [True, False])
def test_a_start_over_tls(served: Any, certificate: Tls, controller: Any, http2: bool) -> None:
    assert served.url.startswith("https://")
    names = [f"tls-{http2}-{generation}" for generation in (1, 2, 3)]
    starts = [controller.start(name, generation) for generation, name in enumerate(names, 1)]
    *answers, health = ask(served, certificate[2], *starts, http2=http2)
    assert [each.status_code for each in answers] == [202] * 3 and health.json()["status"] == "ok"
    assert {each.http_version for each in answers} == {"HTTP/2" if http2 else "HTTP/1.1"}
    quiet(served, certificate[2], controller, names)
    *refused, _ = ask(served, certificate[2], ("/rollout", {"x": "y" * 70000}), ("/rollout", []), http2=http2)
    assert [each.status_code for each in refused] == [413, 422]


def test_plain_requests_and_garbage_at_the_tls_port(served: Any, certificate: Tls, controller: Any) -> None:
    before = served.fds()
    held = []
    for rubbish in (b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n", b"\0" * 1000, b"\x16\x03\x01\xff\xff" + b"\1" * 500,
                         b"\x16\x03\x01", b"",
                    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x15\x03\x03\x00\x02\x02\x28"):  # fmt: skip
        for end in ("close", "reset", "hold"):
            made = socket.create_connection(("127.0.0.1", served.port), 5)
            made.sendall(rubbish)
            if end == "reset":
                made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            held.append(made) if end == "hold" else made.close()
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with pytest.raises((ssl.SSLError, ConnectionError)), socket.create_connection(("127.0.0.1", served.port), 5) as raw:
        old.wrap_socket(raw, server_hostname="127.0.0.1")  # does not trust the certificate, and leaves in the handshake
    *answers, health = ask(served, certificate[2], controller.start("tls-amid", 3))
    assert answers[0].status_code == 202 and health.status_code == 200
    quiet(served, certificate[2], controller, ["tls-amid"])
    assert served.settles(before + 2, 8) <= before + 2  # also those that are held: a handshake has its time
    for each in held:
        each.close()


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def request(stream: int, headers: list[tuple[str, str]], end: bool = True) -> bytes:
    return frame(1, 5 if end else 4, stream, Encoder().encode(headers))


def asked(path: str, method: str = "GET", *more: tuple[str, str]) -> list[tuple[str, str]]:
    return [(":method", method), (":scheme", "http"), (":path", path), (":authority", "x"), *more]


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0)
NO_WINDOW = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, struct.pack(">HI", 4, 0))
STORMS = {
    "no path": PREFACE + request(1, [(":method", "GET"), (":scheme", "http"), (":authority", "x")]),
    "connect without a path": PREFACE + request(1, [(":method", "CONNECT"), (":authority", "x")]),
    "path of bytes": PREFACE + request(1, asked("/\udcff\udcfe".encode("utf-8", "surrogateescape").decode("latin-1"))),
    "empty path": PREFACE + request(1, asked("")),
    "method of bytes": PREFACE + request(1, asked("/", "G\xe9T")),
    "no headers": PREFACE + frame(1, 5, 1),
    "upper case": PREFACE + request(1, [*asked("/health"), ("X-Upper", "1")]),
    "connection header": PREFACE + request(1, asked("/health", "GET", ("connection", "close"))),
    "bad huffman": PREFACE + frame(1, 5, 1, b"\xff" * 50),
    "data for nobody": PREFACE + frame(0, 1, 1, b"x"),
    "data after the answer": PREFACE + request(1, asked("/nothing", "POST"), end=False) + frame(0, 0, 1,
    b"x" * 100) * 300,
    "wrong length": PREFACE + request(1, asked("/rollout", "POST", ("content-length", "5")), end=False) + frame(0, 1,
    1, b"xyz"),
    "rapid reset": PREFACE + b"".join(request(n, asked("/docs")) + frame(3, 0, n, b"\0\0\0\x08") for n in range(1,
    401, 2)),
    "rapid reset of posts": PREFACE + b"".join(
        request(n, asked("/rollout", "POST"), end=False) + frame(3, 0, n, b"\0\0\0\x08") for n in range(1, 201, 2)),
    "no window": NO_WINDOW + b"".join(request(n, asked("/docs")) for n in range(1, 21, 2)),
    "window overflow": PREFACE + frame(8, 0, 0, b"\x7f\xff\xff\xff") * 2,
    "priority on itself": PREFACE + frame(2, 0, 1, b"\0\0\0\x01\x10") + request(1, asked("/health")),
    "priority before": PREFACE + frame(2, 0, 3, b"\0\0\0\x01\x10") + request(3, asked("/health")),
    "a thousand streams": PREFACE + b"".join(request(n, asked("/rollout", "POST"), end=False) for n in range(1, 2001,
    2)),
    "settings flood": PREFACE + frame(4, 0, 0) * 2000,
    "ping flood": PREFACE + frame(6, 0, 0, b"12345678") * 2000,
    "goaway": PREFACE + request(1, asked("/docs")) + frame(7, 0, 0, b"\0" * 8),
    "continuation for ever": PREFACE + frame(1, 0, 1, b"\x82") + frame(9, 0, 1, b"\0" * 1000) * 100,
    "push": PREFACE + frame(5, 4, 1, b"\0\0\0\x02\x82"),
    "big frame": PREFACE + struct.pack(">I", 2**24 - 1)[1:] + b"\0\0\0\0\0\1" + b"x" * 1000,
    "unknown frame": PREFACE + frame(99, 255, 7, b"x") + request(1, asked("/health")),
    "websocket over http/2": PREFACE + request(1, asked("/health", "CONNECT", (":protocol", "websocket")), end=False),
    "root with host twice": PREFACE + request(1, asked("/health", "GET", ("host", "y"))),
}  # fmt: skip


@pytest.mark.parametrize("name", STORMS)
@pytest.mark.parametrize("end", ["half", "hold", "reset"])
def test_http2_that_is_none(plain: Any, name: str, end: str) -> None:
    with socket.create_connection(("127.0.0.1", plain.port), 10) as made:
        try:
            made.sendall(STORMS[name])
            if end == "half":
                made.shutdown(socket.SHUT_WR)
            if end == "reset":
                made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                made.settimeout(0.1 if end == "hold" else 5)
                while made.recv(65536):
                    pass
        except (ConnectionError, TimeoutError):
            assert end != "half"
    assert plain.ask("GET", "/health")[0] == 200


def test_http2_left_nothing_behind(plain: Any, controller: Any) -> None:
    for _ in range(3):
        for name in STORMS:
            with socket.create_connection(("127.0.0.1", plain.port), 10) as made:
                made.sendall(STORMS[name])
    assert plain.settles(plain.rested, 15) <= plain.rested
    assert plain.ask("POST", *controller.start("after-http2"))[0] == 202
    plain.quiet()
    plain.unharmed()


@pytest.mark.parametrize("end", ["close", "reset"])
def test_http2_over_tls_left_nothing_behind(served: Any, certificate: Tls, end: str) -> None:
    """A peer that leaves before an error is answered does not keep its connection open for ever."""
    before = served.settles(0, 1)
    trust = ssl.create_default_context(cafile=certificate[0])
    trust.set_alpn_protocols(["h2"])
    for _ in range(2):
        for name in STORMS:
            raw = socket.create_connection(("127.0.0.1", served.port), 10)
            with trust.wrap_socket(raw, server_hostname="127.0.0.1") as made:
                assert made.selected_alpn_protocol() == "h2"
                made.sendall(STORMS[name])
                if end == "reset":
                    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert served.settles(before + 2, 20) <= before + 2
