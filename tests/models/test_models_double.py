"""The test double as a user runs it: a process of its own, over plain sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runner.models.double import Double
from runner.models.double_faults import Faults, parse_faults
from runner.models.double_http import BadRequest, RequestParser


@contextlib.contextmanager
def running(*words: str, cwd: Path | None = None) -> Iterator[dict[str, Any]]:
    command = [sys.executable, "-m", "runner.models.double", "--port", "0", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=cwd) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


def post(
    port: int, body: Any, path: str = "/v1/chat/completions", method: str = "POST"
) -> tuple[int, dict[str, str], bytes]:
    import http.client

    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, {name.lower(): text for name, text in answer.getheaders()}, answer.read()
    finally:
        connection.close()


HELLO = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
OFFER = [{"type": "function", "function": {"name": "add", "parameters": {}}}]


def test_a_responder_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "async def answer(request):\n    return request['messages'][-1]['content'][::-1]\n\n"
        "def bad(request):\n    1 / 0\n"
    )
    with running("--answer", "./mine.py:answer", cwd=tmp_path) as info:
        assert info["message"] == f"listening on {info['url']}"
        status, _, body = post(info["port"], HELLO)
        assert status == 200
        assert json.loads(body)["choices"][0]["message"] == {"role": "assistant", "content": "ih"}
        assert post(info["port"], {"model": "m"})[0] == 400
        assert post(info["port"], None, "/v1/models", "GET")[0] == 200
        assert post(info["port"], None, "/nowhere", "GET")[0] == 404
        stats = json.loads(post(info["port"], None, "/stats", "GET")[2])
        assert (stats["requests"], stats["in_flight"], stats["max_in_flight"]) == (2, 0, 1)
    with running("--answer", "./mine.py:bad", cwd=tmp_path) as info:
        status, _, body = post(info["port"], HELLO)
        assert status == 500
        assert b"the responder raised ZeroDivisionError" in body


def test_two_steps_faults_and_a_stream() -> None:
    with running("--two-step", '{"a": 1}', "--fixed", "done") as info:
        first = json.loads(post(info["port"], {**HELLO, "tools": OFFER})[2])["choices"][0]
        assert first["message"]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 1}'}
        after = {**HELLO, "tools": OFFER, "messages": [{"role": "tool", "content": "x"}]}
        assert json.loads(post(info["port"], after)[2])["choices"][0]["message"]["content"] == "done"
        status, headers, body = post(info["port"], {**HELLO, "stream": True})
        assert (status, headers["content-type"]) == (200, "text/event-stream")
        assert body.endswith(b"data: [DONE]\n\n")
    with running("--fault", "429", "--retry-after", "5") as info:
        status, headers, _ = post(info["port"], HELLO)
        assert (status, headers["retry-after"]) == (429, "5")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--answer", "nowhere:answer"], 2, "--answer: cannot import `nowhere`"),
        (["--answer", "./nowhere.py:answer"], 2, "--answer: no file `nowhere.py`"),
        (["--answer", "json:nothing"], 2, "--answer: `nothing` is not there in `json`"),
        (["--answer", "json"], 2, "--answer must be module:function"),
        (["--fault", "boom:1"], 2, "--fault: unknown fault `boom`"),
        (["--fault", "429:2"], 2, "--fault: `2` is not a probability between 0 and 1"),
        (["--two-step", "{"], 2, "--two-step: the arguments are not JSON"),
    ],
)
def test_bad_command_lines(words: list[str], code: int, message: str) -> None:
    command = [sys.executable, "-m", "runner.models.double", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"error: {message}")
    assert "Traceback" not in done.stderr


def test_a_port_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "runner.models.double", "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: cannot listen on 127.0.0.1:{port}: Address already in use\nhint:")


def test_pipelined_requests_are_answered_in_order() -> None:
    async def respond(request: dict[str, Any]) -> str:
        await asyncio.sleep(0.02 if request["messages"][0]["content"] == "0" else 0)
        content: str = request["messages"][0]["content"]
        return content

    async def play() -> list[str]:
        async with Double(respond) as double:
            reader, writer = await asyncio.open_connection("127.0.0.1", double.port)
            for number in range(20):
                body = json.dumps({"messages": [{"role": "user", "content": str(number)}]}).encode()
                writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
            answers = []
            for _ in range(20):
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0]))
                answers.append(json.loads(body)["choices"][0]["message"]["content"])
            writer.close()
            await writer.wait_closed()
            return answers

    assert asyncio.run(play()) == [str(number) for number in range(20)]


def test_the_request_parser_takes_bytes_one_by_one() -> None:
    data = (
        b"POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
        b"POST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nde\r\n1;x\r\nf\r\n0\r\n\r\n"
        b"GET /c HTTP/1.0\r\n\r\n"
    )
    parser, found = RequestParser(), []
    for byte in data:
        parser.feed(bytes([byte]))
        while (request := parser.next()) is not None:
            found.append((request.path, request.body, request.keep_alive))
    assert found == [("/a", b"abc", True), ("/b", b"def", True), ("/c", b"", False)]
    for bad in (
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\nx\r\n\r\n",
        b"GET / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"x" * 70_000,
    ):
        parser = RequestParser()
        parser.feed(bad)
        with pytest.raises(BadRequest):
            parser.next()


def test_faults_follow_their_seed() -> None:
    faults = parse_faults("429:0.2, hang:0.1")
    first, again = Faults(faults, 7), Faults(faults, 7)
    drawn = [first.next() for _ in range(2000)]
    assert drawn == [again.next() for _ in range(2000)]
    assert 300 < drawn.count("429") < 500
    assert 120 < drawn.count("hang") < 280
