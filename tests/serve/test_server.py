"""One worker as a process: signals, drain, TLS, and ports that are not free."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runner.serve.http.server import CannotServe, hypercorn_config, listen, url_of


@contextmanager
def worker(*words: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that serves with a fake engine, and its URL."""
    command = [sys.executable, str(Path(__file__).with_name("served.py")), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout.readline().strip()
        finally:
            process.kill()


def get(url: str, body: bytes | None = None) -> tuple[int, Any]:
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_an_idle_server_cleanly(number: signal.Signals) -> None:
    with worker() as (process, url):
        assert get(url + "/health")[0] == 200
        process.send_signal(number)
        assert process.wait(10) == 0


def test_while_it_drains_all_but_starts_are_answered_and_what_is_left_over_is_said() -> None:
    with worker("30", "1.0", "2") as (process, url):
        assert get(url + "/rollout", b"{}")[0] == 202
        process.terminate()
        for _ in range(50):
            if get(url + "/rollout", b"{}")[0] == 503:
                break
            time.sleep(0.01)
        else:
            pytest.fail("starts are still accepted")
        assert get(url + "/health")[0] == get(url + "/rollout/a/status")[0] == 200
        assert get(url + "/rollout/cancel", b'{"all":true}')[0] == 200
        assert process.wait(10) == 3


def test_a_drain_ends_when_its_time_is_over() -> None:
    with worker("0.2", "60") as (process, _):
        process.terminate()
        assert process.wait(10) == 0


def test_a_second_signal_ends_it_at_once() -> None:
    with worker("60", "60") as (process, url):
        process.terminate()
        time.sleep(0.3)
        assert get(url + "/health")[0] == 200
        process.terminate()
        assert process.wait(5) == 130


def test_a_peer_that_neither_sends_nor_hangs_up_does_not_keep_it(tmp_path: Path) -> None:
    with worker() as (process, url), socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as idle:
        idle.sendall(b"GET /health HTTP/1.1\r\nhost: x\r\n")
        time.sleep(0.1)
        process.terminate()
        assert process.wait(10) == 0


def test_port_zero_is_any_free_one_and_a_port_in_use_is_an_error() -> None:
    sockets = listen("127.0.0.1", 0)
    try:
        port = sockets[0].getsockname()[1]
        assert port > 0 and url_of(sockets[0], {}) == f"http://127.0.0.1:{port}"
        assert url_of(sockets[0], {"certfile": "c", "keyfile": "k"}).startswith("https://")
        with pytest.raises(OSError, match="in use"):
            listen("127.0.0.1", port)
        with pytest.raises(OSError, match="assign requested address"):
            listen("192.0.2.1", 0)
    finally:
        for each in sockets:
            each.close()


def test_a_name_is_listened_to_at_all_its_addresses() -> None:
    sockets = listen("localhost", 0)
    try:
        assert len({each.getsockname()[1] for each in sockets}) == 1
    finally:
        for each in sockets:
            each.close()


@pytest.mark.parametrize(
    "settings", [{"certfile": "cert.pem"}, {"certfile": "/none/c.pem", "keyfile": "/none/k.pem"}, {"ciphers": None}]
)
def test_tls_that_cannot_be_set_up_is_said_before_anything_starts(settings: dict[str, Any], tmp_path: Path) -> None:
    if settings == {"ciphers": None}:
        (tmp_path / "x.pem").write_text("nonsense")
        settings = {"certfile": str(tmp_path / "x.pem"), "keyfile": str(tmp_path / "x.pem")}
    with pytest.raises(CannotServe):
        hypercorn_config(settings, [])


def test_settings_of_the_file_go_over_ours() -> None:
    config = hypercorn_config({"backlog": 7, "include_server_header": True, "pid_path": "x", "debug": True}, [])
    assert config.backlog == 7 and config.include_server_header and config.max_app_queue_size == 0
    assert config.pid_path is None and config.debug is False
