"""The real command with several workers, and a controller in the test's own event loop that can hold its answers."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from runner.models.double_http import Connection, Request, response

FILE = """
[workflow]
name = "crowd"
system = "Answer."
[graders.exact]
kind = "exact"
[serve]
port = 0
drain = "2s"
{serve}
[serve.chat]
base_wait = "10ms"
[serve.callbacks]
base_wait = "20ms"
max_wait = "100ms"
"""


class Controller:
    """Answers chat once `gate` is open. `playing` are chat calls that wait now, `most` how many ever did at once."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.gate.set()
        self.playing: dict[str, int] = {}
        self.most = 0
        self.asked: list[str] = []
        self.verdicts: dict[str, list[float | None]] = {}
        self._open: set[Connection] = set()
        self.port = 0

    async def start(self) -> Controller:
        make = lambda: Connection(self._handle, self._open, lambda _: None)  # noqa: E731
        self._server = await asyncio.get_running_loop().create_server(make, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def close(self) -> None:
        self._server.close()
        for connection in list(self._open):
            connection.abort()
        await self._server.wait_closed()
        await asyncio.sleep(0.05)  # what was closed is gone with the next turns of the loop

    def _handle(self, connection: Connection, request: Request) -> None:
        name, what = request.path.split("/")[2], request.path.rpartition("/")[2]
        connection.task = asyncio.get_running_loop().create_task(self._answer(connection, name, what, request.body))

    async def _answer(self, connection: Connection, name: str, what: str, body: bytes) -> None:
        if what != "completions":
            if what == "grader":
                said = json.loads(body)
                sample: dict[str, Any] = said.get("sample") or next(iter((said.get("samples") or {}).values()), {})
                self.verdicts.setdefault(name, []).append(sample.get("reward"))
            connection.finish(response(200, b"{}"))
            return
        self.asked.append(name)
        self.playing[name] = self.playing.get(name, 0) + 1
        self.most = max(self.most, len(self.playing))
        try:
            await self.gate.wait()
        finally:
            self.playing.pop(name, None)
        message = {"role": "assistant", "content": "4"}
        said = {"choices": [{"message": message, "finish_reason": "stop"}]}
        connection.finish(response(200, json.dumps(said).encode()))

    def body(self, name: str) -> dict[str, Any]:
        base = f"http://127.0.0.1:{self.port}/of/{name}"
        return {
            "rollout_id": name,
            "initial_messages": [{"role": "user", "content": "2+2?"}],
            "label": "4",
            "chat_completions_url": f"{base}/v1",
            "completion_callback_url": f"{base}/completion",
            "grader_callback_url": f"{base}/grader",
        }


class Client:
    """One keep-alive connection; the kernel has chosen its worker."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        raw = b"" if body is None else json.dumps(body).encode()
        self._writer.write(f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(raw)}\r\n\r\n".encode() + raw)
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
        length = next(int(line[15:]) for line in head.lower().split("\r\n") if line.startswith("content-length:"))
        content = await self._reader.readexactly(length)
        return int(head.split()[1]), json.loads(content) if content[:1] in (b"{", b"[") else content.decode()

    def close(self) -> None:
        self._writer.close()


class Server:
    """The command, running."""

    def __init__(self, process: asyncio.subprocess.Process, said: dict[str, Any]) -> None:
        self.process = process
        self.pid = said["pid"]
        self.port = int(said["url"].rpartition(":")[2])
        self._clients: list[Client] = []

    async def client(self) -> Client:
        self._clients.append(Client(*await asyncio.open_connection("127.0.0.1", self.port)))
        return self._clients[-1]

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Over a connection of its own."""
        client = await self.client()
        try:
            return await client.ask(method, path, body)
        finally:
            client.close()

    def workers(self) -> list[int]:
        """Process numbers of the workers."""
        found = []
        for each in Path("/proc").glob("[0-9]*/stat"):
            try:
                pid, _, rest = each.read_text().partition(" (")
            except OSError:
                continue
            if rest.rpartition(") ")[2].split()[1] == str(self.pid):
                found.append(int(pid))
        return sorted(found)

    def close(self) -> None:
        for each in self._clients:
            each.close()


class Stage:
    """A project folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.errors = ""

    @asynccontextmanager
    async def serving(self, workers: int, serve: str = "") -> AsyncIterator[Server]:
        (self.folder / "workflow.toml").write_text(FILE.replace("{serve}", serve))
        command = str(Path(sys.executable).with_name("osmosis-run"))
        process = await asyncio.create_subprocess_exec(
            command, "serve", "--workers", str(workers), cwd=self.folder, env={**os.environ, "NO_COLOR": "1"},
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        line = await process.stdout.readline()
        if not line:
            pytest.fail((await process.stderr.read()).decode())
        server = Server(process, json.loads(line))
        try:
            yield server
        finally:
            server.close()
            if process.returncode is None:
                process.kill()
            self.errors = (await process.stderr.read()).decode()
            await process.wait()

    async def until(self, true: Callable[[], Any], seconds: float = 10.0) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not true():  # noqa: ASYNC110 (what is waited for is in another's hands)
                    await asyncio.sleep(0.01)
        except TimeoutError:
            pytest.fail("it never came")

    def run(self, test: Callable[[Controller], Any]) -> None:
        async def whole() -> None:
            controller = await Controller().start()
            try:
                async with asyncio.timeout(20):
                    await test(controller)
            finally:
                await controller.close()

        asyncio.run(whole())


@pytest.fixture
def crowd(tmp_path: Path) -> Stage:
    return Stage(tmp_path)
