"""Model servers that hang, reset, refuse, or answer nonsense: real sockets, and no failure becomes a score."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from typing import Any

import pytest

QUICK = ("--set", 'model.timeout="300ms"', "--set", "model.retries.attempts=1")


def test_mixed_faults_are_ridden_out(project: Any, double: Any) -> None:
    server = double("--fault", "429:0.08,500:0.08,503:0.04,reset:0.05,cut:0.05,garbage:0.04,empty:0.04,hang:0.01",
                    "--retry-after", "0", "--seed", "4")  # fmt: skip
    project.rows(300)
    project.run("eval", "-q", "--set", 'model.timeout="1s"', "--set", "model.retries.attempts=12")
    lines = project.lines()
    assert len(lines) == 300 and {line["outcome"] for line in lines} == {"scored"}
    assert all(line["reward"] == float(line["row"] % 7 != 0) for line in lines)
    counts = server.stats()
    faults = sum(count for kind, count in counts["outcomes"].items() if kind not in ("200", "gone"))
    retries = sum(call["retries"] for line in lines for call in line["calls"])
    assert faults > 60
    assert faults == counts["requests"] - 300
    # A reset of a kept-alive connection before any byte of an answer is made good at once, without counting as a try.
    assert faults - counts["outcomes"]["reset"] <= retries <= faults, "each fault is one retry, and each is counted"


PERMANENT = {
    "hang": ("model_unavailable", "no answer"),
    "reset": ("model_unavailable", "the connection"),
    "cut": ("model_unavailable", ""),
    "garbage": ("model_garbled", "html"),
    "empty": ("model_garbled", "no choice"),
    "429": ("model_unavailable", "429"),
    "500": ("model_unavailable", "500"),
    "401": ("model_refused", "no key was sent"),
    "404": ("model_refused", "base_url"),
}


@pytest.mark.parametrize("fault", PERMANENT)
def test_a_server_that_never_recovers_stops_the_run_and_is_resumed_when_it_has(
    project: Any, in_a_row: Any, double: Any, fault: str
) -> None:
    kind, said = PERMANENT[fault]
    server = double("--fault", f"{fault}:1", "--retry-after", "0")
    project.rows(40)
    started = time.monotonic()
    done = project.run("eval", "--concurrency", "4", *QUICK, code=3)
    assert time.monotonic() - started < 15
    assert in_a_row(done.err, f"model/{kind}") >= 8
    assert said in done.err.lower()
    assert "the same command goes on" in done.err
    lines = project.lines()
    # Failures count in the order of beginning: while the first of them is still asked, the others go on.
    assert 8 <= len(lines) < 40, "the breaker trips before the dataset is burnt"
    for line in lines:
        assert (line["outcome"], line["reward"], line["scores"]) == ("failed", None, {})
        assert (line["failure"]["boundary"], line["failure"]["kind"]) == ("model", kind)
    assert project.summary()["reward"] == {**project.summary()["reward"], "mean": None, "n": 0}

    server.close()
    double(port=server.port)
    done = project.run("eval", *QUICK, code=3)
    assert f"{len(lines)} re-used, {40 - len(lines)} to run" in done.err, "a failed rollout stays as it is until asked"
    assert "of the rollouts failed" in done.err and "--retry-failed" in done.err + done.out
    done = project.run("eval", "--retry-failed", *QUICK)
    assert f"{40 - len(lines)} re-used, {len(lines)} to run" in done.err
    assert len(project.last()) == 40
    assert {line["outcome"] for line in project.last().values()} == {"scored"}


def test_a_server_that_restarts_under_load(project: Any, double: Any, until: Any) -> None:
    server = double("--latency", "0.02")
    project.rows(300)
    process = project.start("eval", "-q", "--concurrency", "16", "--set", 'model.retries.max_wait="400ms"',
                            "--set", "model.retries.attempts=20")  # fmt: skip
    until(lambda: project.journal().exists() and project.journal().read_bytes().count(b"\n") > 40)
    server.close()
    time.sleep(0.3)
    double("--latency", "0.002", port=server.port)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert len(project.lines()) == 300 and {line["outcome"] for line in project.lines()} == {"scored"}


@pytest.mark.parametrize(
    ("url", "said"),
    [("http://127.0.0.1:1/v1", "127.0.0.1:1"), ("http://no-such-host.invalid/v1", "no-such-host.invalid")],
    ids=["refused", "unresolvable"],
)
def test_no_network(project: Any, double: Any, url: str, said: str) -> None:
    double()
    done = project.run("eval", *QUICK, "--set", f"model.base_url={url}", code=3, timeout=40)
    assert said in done.err and "model/model_unavailable" in done.err
    assert {line["outcome"] for line in project.lines()} == {"failed"}


@pytest.fixture
def raw() -> Iterator[Callable[..., tuple[int, list[float]]]]:
    """`raw(answers)` serves what `answers(n)` gives for the n-th connection, byte for byte, then closes it.

    Gives the port and the times of the requests.
    """
    open_sockets: list[socket.socket] = []

    def start(answers: Callable[[int], bytes]) -> tuple[int, list[float]]:
        listener = socket.create_server(("127.0.0.1", 0))
        open_sockets.append(listener)
        times: list[float] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    _read_request(connection)
                    times.append(time.time())
                    connection.sendall(answers(len(times) - 1))

        threading.Thread(target=serve, daemon=True).start()
        return listener.getsockname()[1], times

    yield start
    for each in open_sockets:
        each.shutdown(socket.SHUT_RDWR)
        each.close()


def _read_request(connection: socket.socket) -> None:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length:
        body += connection.recv(65536)


def answer(status: str, body: bytes, *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", "connection: close", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


GOOD = answer("200 OK", json.dumps({"choices": [{"message": {"role": "assistant", "content": "1"}}]}).encode())


@pytest.mark.parametrize("how", ["seconds", "date"])
def test_retry_after_is_honoured(project: Any, double: Any, raw: Any, how: str) -> None:
    double()
    project.rows(1)

    def busy_once(n: int) -> bytes:
        value = "1" if how == "seconds" else formatdate(time.time() + 2, usegmt=True)
        return answer("429 Too Many Requests", b"{}", f"Retry-After: {value}") if n == 0 else GOOD

    port, times = raw(busy_once)
    project.run("eval", "-q", "--set", f"model.base_url=http://127.0.0.1:{port}/v1",
                "--set", 'model.retries.max_wait="10s"')  # fmt: skip
    assert len(times) == 2 and 0.9 < times[1] - times[0] < 3.5
    assert project.lines()[0]["calls"][0]["retries"] == 1


NONSENSE = {
    "HTML with 200": answer("200 OK", b"<html><body>Welcome</body></html>", "content-type: text/html"),
    "no body": answer("200 OK", b""),
    "half a JSON": answer("200 OK", b'{"choices": [{"mess'),
    "choices is null": answer("200 OK", b'{"choices": null}'),
    "a choice without a message": answer("200 OK", b'{"choices": [{}]}'),
    "content is a number": answer("200 OK", b'{"choices": [{"message": {"role": "assistant", "content": 7}}]}'),
    "invalid UTF-8": answer("200 OK", b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'),
    "not HTTP": b"SSH-2.0-OpenSSH_9.6\r\n",
    "nothing at all": b"",
    "an endless header": b"HTTP/1.1 200 OK\r\n" + b"x-filler: " + b"y" * 300_000,
    "a wrong length": b"HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\n{}",
    "a length that lies": b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{}",
    "broken chunks": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n",
    "a redirect": answer("302 Found", b"", "location: http://127.0.0.1:1/"),
    "status 999": answer("999 Odd", b"{}"),
}


def test_nonsense_of_every_kind_is_a_failure_of_the_model(project: Any, double: Any, raw: Any) -> None:
    """One run; the n-th row meets the n-th nonsense, and every row is told apart from a wrong answer."""
    double()
    kinds = list(NONSENSE)
    project.rows(len(kinds))
    port, _ = raw(lambda n: NONSENSE[kinds[n]])
    project.run("eval", "-q", "--concurrency", "1", "--set", f"model.base_url=http://127.0.0.1:{port}/v1",
                "--set", "model.retries.attempts=0", "--set", 'model.timeout="2s"', "--set", "eval.breaker=0",
                code=3)  # fmt: skip
    lines = project.lines()
    assert len(lines) == len(kinds)
    for kind, line in zip(kinds, lines, strict=True):
        assert (line["outcome"], line["reward"]) == ("failed", None), kind
        failure = line["failure"]
        assert failure["boundary"] == "model", (kind, failure)
        assert failure["kind"] in ("model_garbled", "model_unavailable", "model_refused"), (kind, failure)
        assert f"127.0.0.1:{port}" in line["failure"]["message"], kind


def test_a_huge_answer_does_not_take_the_process_along(project: Any, double: Any, raw: Any) -> None:
    """An answer of 40 MB is an answer; one without end is cut off by the deadline or by its size."""
    double()
    project.rows(1)
    body = json.dumps({"choices": [{"message": {"role": "assistant", "content": "x" * 40_000_000}}]}).encode()
    port, _ = raw(lambda n: answer("200 OK", body))
    project.run("eval", "-q", "--set", f"model.base_url=http://127.0.0.1:{port}/v1", code=None)
    line = project.lines()[0]
    assert line["outcome"] in ("scored", "failed")
    assert line["reward"] == (0.0 if line["outcome"] == "scored" else None)


def test_a_secret_that_an_endpoint_echoes_is_not_written_down(project: Any, double: Any, raw: Any) -> None:
    double()
    project.rows(1)
    key = "tok-" + "verysecret" * 3
    body = json.dumps({"error": {"message": f"\x1b[2J bad key {key}"}}).encode()
    port, _ = raw(lambda n: answer("401 Unauthorized", body))
    done = project.run("eval", "--set", f"model.base_url=http://127.0.0.1:{port}/v1", "--set",
                       "model.api_key.env=MY_KEY", env={"MY_KEY": key}, code=3)  # fmt: skip
    assert "\x1b" not in done.out + done.err
    assert "\x1b" not in project.run("show", "runs/it").out + project.run("show", "runs/it", "0").out
    assert "MY_KEY" in json.dumps(project.lines()[0]["failure"])
    written = [path.read_bytes() for path in (project.folder / "runs").rglob("*") if path.is_file()]
    assert not any(key.encode() in content for content in [*written, (done.out + done.err).encode()])
    assert os.environ.get("MY_KEY") is None
