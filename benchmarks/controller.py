"""A controller that is never the bottleneck: it posts starts, answers chat with bytes made beforehand, and counts.

Every rollout makes two chat calls: the first answer calls the tool, the second is the text. A rollout is over with its
last callback, which must say that it was scored 1: anything else ends the benchmark.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json, to_json

from runner.models.double_answer import completion, events
from runner.models.double_command import two_step
from runner.models.double_http import Connection, Request, response
from runner.models.http1 import Pool
from runner.models.http1_connection import Bounds

DIALECTS = ("agent-loop", "multi-sample", "single-sample")
_TOOLS = [{"type": "function", "function": {"name": "add"}}]
_CALLED = b'"role":"tool"', b'"role": "tool"'
_HEARD = response(200, b'{"status":"ok"}')
_BOUNDS = Bounds(300, 1 << 20)


def _answers() -> dict[tuple[bool, bool], bytes]:
    """The whole answer by (is the tool called already, is it streamed)."""
    respond = two_step("2", '{"a": 1, "b": 1}')
    made = {}
    for called in (False, True):
        asked: dict[str, Any] = {"model": "m", "messages": [{"role": "tool" if called else "user"}], "tools": _TOOLS}
        said = completion(asked, respond(asked))
        made[called, False] = response(200, to_json(said))
        body = b"".join(events(said, include_usage=True))
        head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        made[called, True] = head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return made


@dataclass
class Tally:
    """What a load did: seconds that each start took to be answered, and when the verdicts were in."""

    starts: list[float] = field(default_factory=list)
    rollouts: int = 0
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Rollouts per second from the first start to the last verdict."""
        return self.rollouts / self.seconds


class Controller:
    """Serves chat and callbacks on a port of its own while it is entered. `latency` seconds pass before each answer."""

    def __init__(self, dialect: str, *, latency: float = 0.0) -> None:
        self.dialect = dialect
        self.latency = latency
        self.asked = 0
        self._answers = _answers()
        self._connections: set[Connection] = set()
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self._server: asyncio.Server | None = None
        self.url = ""

    async def __aenter__(self) -> Controller:
        loop = asyncio.get_running_loop()
        make = lambda: Connection(self._handle, self._connections, lambda _: None)  # noqa: E731
        self._server = await loop.create_server(make, "127.0.0.1", 0, backlog=4096)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self._connections):
            connection.abort()

    def _handle(self, connection: Connection, request: Request) -> None:
        path = request.path
        if path.endswith("/chat/completions"):
            self.asked += 1
            body = request.body
            # Agent-loop rollouts send no tools; what was said last is in the messages of every dialect.
            answer = self._answers[any(mark in body for mark in _CALLED), b'"stream":true' in body]
            if self.latency:
                connection.timer = asyncio.get_running_loop().call_later(self.latency, connection.finish, answer)
            else:
                connection.finish(answer)
            return
        connection.finish(_HEARD)
        if self.dialect == "agent-loop" or path.endswith(("/grader", "/v1/grader/completed")):
            self._over(from_json(request.body))

    def _over(self, said: dict[str, Any]) -> None:
        waiting = self._waiting.pop(said["rollout_id"], None)
        if waiting is None or waiting.done():
            return  # heard before
        reward = said.get("reward") if self.dialect == "agent-loop" else _reward(said)
        if reward == 1.0:
            waiting.set_result(None)
        else:
            waiting.set_exception(AssertionError(f"a rollout went wrong: {json.dumps(said)[:800]}"))

    def start(self, number: int, mark: str) -> tuple[str, str, bytes]:
        """The id, the path and the body of one start."""
        name = f"{mark}-{number}"
        prompt = [{"role": "user", "content": f"What is {number} plus 1?"}]
        if self.dialect == "agent-loop":
            body: dict[str, Any] = {"rollout_id": name, "server_url": self.url, "messages": prompt,
                                    "completion_params": {}, "metadata": {"ground_truth": "2"}}  # fmt: skip
            return name, "/v1/rollout/init", to_json(body)
        body = {"rollout_id": name, "initial_messages": prompt, "label": "2", "metadata": {},
                "controller_api_key": "callback-key"}  # fmt: skip
        if self.dialect == "multi-sample":
            base = {"chat_completions_url": self.url, "completion_callback_url": self.url + "/v1/rollout/completed",
                    "grader_callback_url": self.url + "/v1/grader/completed"}  # fmt: skip
        else:
            own = f"{self.url}/v1/rollouts/{name}"
            base = {"chat_completions_url": own, "completion_callback_url": own + "/completion",
                    "grader_callback_url": own + "/grader", "llm_api_key": "chat-key"}  # fmt: skip
        return name, "/rollout", to_json(body | base)

    async def play(self, port: int, rollouts: int, in_flight: int, mark: str) -> Tally:
        """So many rollouts, `in_flight` at once from start to verdict."""
        tally, pool, numbers = Tally(), Pool("127.0.0.1", port), iter(range(rollouts))

        async def worker() -> None:
            for number in numbers:
                await self._await(self.post(pool, port, number, mark, tally))

        began = time.perf_counter()
        await asyncio.gather(*[worker() for _ in range(in_flight)])
        tally.seconds, tally.rollouts = time.perf_counter() - began, rollouts
        await pool.aclose()
        return tally

    async def pour(self, port: int, rollouts: int, rate: float, mark: str) -> Tally:
        """So many starts at a fixed rate, whoever waits; verdicts are not waited for."""
        tally, pool = Tally(), Pool("127.0.0.1", port)
        began, tasks = time.perf_counter(), []
        for number in range(rollouts):
            early = began + number / rate - time.perf_counter()
            if early > 0:
                await asyncio.sleep(early)
            tasks.append(asyncio.ensure_future(self.post(pool, port, number, mark, tally)))
        await asyncio.gather(*tasks)
        tally.seconds, tally.rollouts = time.perf_counter() - began, rollouts
        await pool.aclose()
        return tally

    async def _await(self, posted: Any) -> None:
        async with asyncio.timeout(120):
            await (await posted)

    async def post(self, pool: Pool, port: int, number: int, mark: str, tally: Tally) -> asyncio.Future[None]:
        """Post one start, which must be accepted; what is done when its verdict has come."""
        name, path, body = self.start(number, mark)
        head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n"
        over = self._waiting[name] = asyncio.get_running_loop().create_future()
        began = time.perf_counter()
        answer = await pool.post((f"{head}content-length: {len(body)}\r\n\r\n".encode(), body), _BOUNDS)
        tally.starts.append(time.perf_counter() - began)
        if answer.status not in (200, 202):
            raise AssertionError(f"a start was answered {answer.status}: {answer.body[:500]!r}")
        return over


def _reward(said: dict[str, Any]) -> Any:
    sample = said.get("sample") or next(iter((said.get("samples") or {}).values()), {})
    return sample.get("reward")
