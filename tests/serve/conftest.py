"""A whole worker in the test's own event loop: a project on disk, the real house behind hypercorn, real sockets.

Across from it a controller that answers chat and callbacks as the test's two functions say.
"""

from __future__ import annotations

import asyncio
import json
import resource
import textwrap
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from runner.build.plan import Plan, build
from runner.config.load import load
from runner.models.double_http import Connection, Request, response
from runner.serve.house import House, Opening, open_house
from runner.serve.http.server import hypercorn_config, listen
from tests.waiting import until

HEAD = """
[workflow]
name = "test"
{workflow}
"""
EXACT = '[graders.answer]\nkind = "exact"\n'
QUICK = """
[serve.chat]
base_wait = "10ms"
retries = { attempts = 2, max_wait = "50ms" }
[serve.callbacks]
timeout = "5s"
base_wait = "20ms"
max_wait = "100ms"
"""


@dataclass
class Seen:
    """A request as the controller got it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float

    @property
    def rollout(self) -> str:
        """Whose it is, by the URL or the body."""
        if self.path.startswith("/of/"):
            return self.path.split("/")[2]
        return str(self.body.get("rollout_id"))

    @property
    def channel(self) -> str:
        return "grader" if self.path.endswith("/grader") else "completion"


Script = Callable[[Seen], Any]


@dataclass
class Controller:
    """`chat` gives a text or a whole message, `ack` a status; either may be awaitable. "drop" breaks the connection."""

    chat: Script = lambda seen: "4"
    ack: Script = lambda seen: 200
    port: int = 0
    chats: list[Seen] = field(default_factory=list)
    callbacks: list[Seen] = field(default_factory=list)
    acked: list[Seen] = field(default_factory=list)
    _open: set[Connection] = field(default_factory=set)
    _server: Any = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> Controller:
        loop = asyncio.get_running_loop()
        made = lambda: Connection(self._handle, self._open, lambda connection: None)  # noqa: E731
        self._server = await loop.create_server(made, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        self._server.close()
        for connection in list(self._open):
            connection.abort()
        await self._server.wait_closed()

    def _handle(self, connection: Connection, request: Request) -> None:
        seen = Seen(request.path, request.headers, json.loads(request.body), time.monotonic())
        is_chat = request.path.endswith("/chat/completions")
        (self.chats if is_chat else self.callbacks).append(seen)
        connection.task = asyncio.get_running_loop().create_task(self._answer(connection, seen, is_chat))

    async def _answer(self, connection: Connection, seen: Seen, is_chat: bool) -> None:
        reply = self.chat(seen) if is_chat else self.ack(seen)
        if isinstance(reply, Awaitable):
            reply = await reply
        if reply == "drop":
            connection.abort()
        elif is_chat:
            connection.finish(response(200, json.dumps(completion(reply)).encode()))
        else:
            if 200 <= reply < 300:
                self.acked.append(seen)
            connection.finish(response(reply, b"{}"))

    def told(self, name: str) -> list[tuple[str, Any, Any]]:
        """(channel, status, reward) of the callbacks that were acknowledged for one rollout, in order."""
        return [summary(seen) for seen in self.acked if seen.rollout == name]

    async def until(self, number: int, name: str | None = None, seconds: float = 5.0) -> None:
        """Until so many callbacks were acknowledged."""
        await until(lambda: sum(name in (None, seen.rollout) for seen in self.acked) >= number, seconds)

    def start_of(self, name: str | None, generation: int = 3, **more: Any) -> tuple[str, dict[str, Any]]:
        """Path and body of a start in one of the generations; `more` is put over the body."""
        ask = [{"role": "user", "content": "2+2?"}]
        if generation == 1:
            body = {"rollout_id": name, "server_url": self.url, "messages": ask, "completion_params": {}}
            return "/v1/rollout/init", {**body, "metadata": {"ground_truth": "4"}, **more}
        # An id in the URL is the third generation's.
        base = f"{self.url}/of/{name}" if generation == 3 else self.url
        body = {
            "rollout_id": name,
            "initial_messages": ask,
            "label": "4",
            "chat_completions_url": f"{base}/v1",
            "completion_callback_url": f"{base}/completion",
            "grader_callback_url": f"{base}/grader",
        }
        return "/rollout", {key: value for key, value in {**body, **more}.items() if value != "absent"}


def summary(seen: Seen) -> tuple[str, Any, Any]:
    body = seen.body
    sample = body.get("sample") or next(iter((body.get("samples") or {}).values()), None) or body
    return seen.channel, body["status"], sample.get("reward")


def completion(reply: Any) -> dict[str, Any]:
    message = reply if isinstance(reply, dict) else {"role": "assistant", "content": reply}
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    usage = {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4}
    return {"choices": [{"message": {"role": "assistant", **message}, "finish_reason": finish}], "usage": usage}


def calls(*names: str) -> dict[str, Any]:
    """A message that calls tools without arguments."""
    made = [
        {"id": f"c{place}", "type": "function", "function": {"name": name, "arguments": "{}"}}
        for place, name in enumerate(names)
    ]
    return {"content": None, "tool_calls": made}


def tool_first(name: str) -> Script:
    """A chat that calls a tool, and then answers."""
    return lambda seen: "4" if seen.body["messages"][-1]["role"] == "tool" else calls(name)


@contextmanager
def no_room() -> Iterator[None]:
    """No file may grow."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    body: Any


@dataclass
class Server:
    """One worker, and how to ask it."""

    house: House
    port: int

    async def ask(self, method: str, path: str, body: Any = None) -> Reply:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            raw = b"" if body is None else json.dumps(body).encode()
            head = f"{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(raw)}\r\n\r\n"
            writer.write(head.encode() + raw)
            answer = await reader.read()
        finally:
            writer.close()
        head_bytes, _, content = answer.partition(b"\r\n\r\n")
        lines = head_bytes.decode().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        return Reply(int(lines[0].split()[1]), headers, json.loads(content))

    async def start(self, start: tuple[str, dict[str, Any]]) -> Reply:
        return await self.ask("POST", *start)

    async def status(self, name: str) -> str:
        return str((await self.ask("GET", f"/rollout/{name}/status")).body["status"])

    async def becomes(self, name: str, word: str, seconds: float = 5.0) -> None:
        async with asyncio.timeout(seconds):
            while await self.status(name) != word:  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    async def cancel(self, **selector: Any) -> dict[str, str]:
        """Answered within a second, where nobody else is at work: here other tests are."""
        async with asyncio.timeout(2.0):
            reply = await self.ask("POST", "/rollout/cancel", selector)
        assert reply.status == 200, reply
        return dict(reply.body["dispositions"])

    async def quiet(self, seconds: float = 5.0) -> None:
        """Until nothing plays and nothing is owed."""
        engine, deliveries = self.house.engine, self.house.deliveries
        await until(lambda: not engine.load().held and not deliveries.backlog().pending, seconds)


@dataclass
class Stage:
    """A project folder. `toml` goes after a head without a model; `serve` into `[serve]`."""

    folder: Path
    controllers: list[Controller] = field(default_factory=list)
    Controller = Controller
    calls = staticmethod(calls)
    tool_first = staticmethod(tool_first)
    until = staticmethod(until)
    no_room = staticmethod(no_room)

    @property
    def state(self) -> Path:
        return self.folder / "state" / "rollouts.db"

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return path

    def plan(self, toml: str = EXACT, serve: str = "", workflow: str = "") -> Plan:
        text = HEAD.replace("{workflow}", workflow) + textwrap.dedent(toml)
        return build(load(self.write("workflow.toml", f"{text}\n[serve]\n{textwrap.dedent(serve)}\n{QUICK}")))

    def server(self, port: int) -> Server:
        """A server in another process; it has no house here."""
        return Server(cast("House", None), port)

    @asynccontextmanager
    async def serving(
        self, toml: str = EXACT, serve: str = "", workflow: str = "", opening: Opening | None = None
    ) -> AsyncIterator[Server]:
        from hypercorn.asyncio import serve as run

        async with open_house(self.plan(toml, serve, workflow), opening or Opening()) as house:
            sockets = listen("127.0.0.1", 0)
            over = asyncio.Event()
            config = hypercorn_config({"keep_alive_timeout": 2.0}, sockets)
            served = asyncio.ensure_future(run(house.app, config, shutdown_trigger=over.wait, mode="asgi"))  # type: ignore[arg-type]
            try:
                yield Server(house, sockets[0].getsockname()[1])
            finally:
                for each in sockets:
                    each.close()
                over.set()
                await served

    async def controller(self, chat: Script = lambda seen: "4", ack: Script = lambda seen: 200) -> Controller:
        controller = await Controller(chat, ack).start()
        self.controllers.append(controller)
        return controller

    def run(self, test: Callable[[], Awaitable[None]]) -> None:
        async def whole() -> None:
            try:
                await test()
            finally:
                for controller in self.controllers:
                    await controller.stop()

        asyncio.run(whole())


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)
