"""The real command in a process of its own, a controller in a thread, and what the process holds, read from /proc."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from runner.models.double_http import Connection, Request, response

FILE = """
[workflow]
name = "hostile"
label = "{{ row.ground_truth }}"
[graders.answer]
kind = "exact"
[serve]
port = 0
drain = "1s"
max_body = "64KiB"
max_metadata = "4KiB"
request_timeout = "1s"
max_concurrent = 64
max_queue = 20000
api_key = { env = "HOSTILE_KEY" }
state = "state/rollouts.db"
[serve.chat]
base_wait = "10ms"
retries = { attempts = 2, max_wait = "50ms" }
[serve.callbacks]
base_wait = "20ms"
max_wait = "100ms"
[serve.hypercorn]
keep_alive_timeout = 2.0
read_timeout = 3
"""
KEY = "server-key-7f3a9c"


def completion(text: str) -> bytes:
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice], "usage": usage}).encode()


@dataclass
class Double:
    """A controller. Each rollout of the third generation has its own URLs: `/of/NAME/…`.

    `answer` may give the whole response to a request instead of the usual one.
    """

    answer: Callable[[Request], bytes | None] = lambda request: None
    port: int = 0
    paths: list[str] = field(default_factory=list)
    verdicts: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _open: set[Connection] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(5)

    def _run(self, ready: threading.Event) -> None:
        async def listen() -> None:
            made = lambda: Connection(self._handle, self._open, lambda connection: None)  # noqa: E731
            self._server = await self._loop.create_server(made, "127.0.0.1", 0)
            self.port = self._server.sockets[0].getsockname()[1]

        self._loop.run_until_complete(listen())
        self._loop.call_soon(ready.set)
        self._loop.run_forever()
        self._server.close()
        for connection in list(self._open):
            connection.abort()
        self._loop.run_until_complete(self._server.wait_closed())
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _handle(self, connection: Connection, request: Request) -> None:
        self.paths.append(request.path)
        said = self.answer(request)
        if said is not None:
            connection.finish(said)
        elif request.path.endswith("/chat/completions"):
            connection.finish(response(200, completion("4")))
        else:
            body = json.loads(request.body)
            if request.path.endswith(("/grader", "/v1/rollout/completed")):
                self.verdicts.setdefault(str(body["rollout_id"]), []).append(body)
            connection.finish(response(200, b"{}"))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, name: Any, generation: int = 3, **more: Any) -> tuple[str, dict[str, Any]]:
        """Path and body of a good start."""
        ask = [{"role": "user", "content": "2+2?"}]
        if generation == 1:
            body = {"rollout_id": name, "server_url": self.url, "messages": ask, "completion_params": {},
                    "max_turns": 3, "max_tokens_total": 1000, "metadata": {"ground_truth": "4"}}  # fmt: skip
            return "/v1/rollout/init", {**body, **more}
        base = f"{self.url}/of/{name}" if generation == 3 else self.url
        body = {"rollout_id": name, "initial_messages": ask, "label": "4", "chat_completions_url": f"{base}/v1",
                "completion_callback_url": f"{base}/completion", "grader_callback_url": f"{base}/grader",
                "agent_timeout_sec": 20, "grader_timeout_sec": 5}  # fmt: skip
        return "/rollout", {**body, **more}


@dataclass
class Served:
    """The running command. `log` holds what it wrote to stderr."""

    process: subprocess.Popen[str]
    url: str
    folder: Path
    log: Path
    rested: int = 0
    """Open files before anything happened."""
    KEY = KEY

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def stderr(self) -> str:
        return self.log.read_text()

    def fds(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/task").iterdir()))

    def value(self, name: str) -> float:
        """A metric of one sample."""
        found = re.search(rf"^\w+_{name}(?:{{.*}})? (\S+)$", self.metrics(), re.MULTILINE)
        assert found is not None, name
        return float(found[1])

    def rss(self) -> float:
        """MiB resident."""
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found is not None
        return int(found[1]) / 1024

    def ask(self, method: str, path: str, body: Any = None, key: str | None = KEY, **more: str) -> tuple[int, bytes]:
        """One whole request on a connection of its own."""
        raw = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        head = {"host": "x", "connection": "close", "content-length": str(len(raw)), **more}
        if key is not None:
            head["authorization"] = f"Bearer {key}"
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        status, _, content = self.send(f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode() + raw)
        return status, content

    def send(self, data: bytes, timeout: float = 10) -> tuple[int, bytes, bytes]:
        """Raw bytes, then everything that comes back: status (0 for none), head, body of the first answer."""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as made:
            try:
                made.sendall(data)
                parts = []
                while part := made.recv(65536):
                    parts.append(part)
            except ConnectionError:
                pass
        head, _, content = b"".join(parts).partition(b"\r\n\r\n")
        return int(head.split()[1]) if head else 0, head, content

    def metrics(self) -> str:
        return self.ask("GET", "/metrics")[1].decode()

    def quiet(self, seconds: float = 20) -> dict[str, Any]:
        """Wait until nothing plays and nothing is owed."""
        until = time.monotonic() + seconds
        while True:
            health: dict[str, Any] = json.loads(self.ask("GET", "/health")[1])
            if not health["active_rollouts"] and not health["callbacks"]["pending"]:
                return health
            assert time.monotonic() < until, health
            time.sleep(0.02)

    def settles(self, most: int, seconds: float = 15) -> int:
        """Wait until no more than so many files are open; how many there are."""
        until = time.monotonic() + seconds
        while (found := self.fds()) > most and time.monotonic() < until:
            time.sleep(0.1)
        return found

    def steady(self, seconds: float = 10) -> int:
        """Wait until as many files are open as half a second before; how many there are."""
        until, seen = time.monotonic() + seconds, [-1]
        while len(set(seen[-6:])) > 1 or len(seen) < 6:
            assert time.monotonic() < until, seen
            time.sleep(0.1)
            seen.append(self.fds())
        return seen[-1]

    def unharmed(self) -> None:
        """No 500 was ever answered, and nothing was logged as an error."""
        assert self.process.poll() is None
        wrong = [line for line in self.metrics().splitlines() if re.search(r'http_requests_total.*code="5\d\d"', line)]
        assert not wrong, wrong
        said = self.stderr()
        assert "Traceback" not in said and "Exception" not in said and "fault of the server" not in said, said[-4000:]


Serve = Callable[..., Served]


@pytest.fixture(scope="module")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Starts servers with words of the command line; each ends with the module, and must end well."""
    running: list[Served] = []

    def start(*words: str, text: str = FILE, folder: Path | None = None) -> Served:
        folder = folder or tmp_path_factory.mktemp("hostile")
        (folder / "workflow.toml").write_text(text)
        command = [str(Path(sys.executable).with_name("osmosis-run")), "serve", *words]
        log = folder / f"stderr-{len(running)}.txt"
        environment = {**os.environ, "NO_COLOR": "1", "HOSTILE_KEY": KEY}
        with log.open("w") as errors:
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder, env=environment
            )
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, log.read_text()
        running.append(Served(process, json.loads(line)["url"], folder, log))
        return running[-1]

    yield start
    for each in running:
        if each.process.poll() is None:
            each.process.send_signal(signal.SIGTERM)
        try:
            each.process.wait(15)
        except subprocess.TimeoutExpired:
            each.process.kill()
            each.process.wait()
        assert each.process.stdout is not None
        each.process.stdout.close()
        assert each.process.returncode in (0, 3, -signal.SIGKILL), each.stderr()[-2000:]


@pytest.fixture(scope="module")
def make_double() -> Iterator[Callable[..., Double]]:
    made: list[Double] = []

    def make(**options: Any) -> Double:
        made.append(Double(**options))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.fixture(scope="module")
def controller(make_double: Callable[..., Double]) -> Double:
    return make_double()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, ssl.SSLContext]:
    """A certificate for 127.0.0.1 signed by itself, its key, and a client's context that trusts it."""
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
               "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
               "-keyout", str(key), "-out", str(cert)]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)
    return cert, key, ssl.create_default_context(cafile=str(cert))


@pytest.fixture(scope="session")
def attacks() -> Any:
    """The module beside this file that makes hostile requests."""
    spec = importlib.util.spec_from_file_location("hostile_attacks", Path(__file__).with_name("attacks.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["hostile_attacks"] = module
    spec.loader.exec_module(module)
    return module
