"""An OpenAI-compatible server that computes its answers: the shipped test double (`python -m runner.models.double`).

It speaks real HTTP and misbehaves on demand, so that everything above a model can be tested without one. In a
program: `async with Double(responder) as double: ... double.base_url`.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

if __name__ == "__main__":
    # `python -m` puts the current folder first; user code is found last, so that it cannot shadow a library.
    _here = str(Path.cwd())
    if sys.path and sys.path[0] in ("", _here):
        sys.path.append(sys.path.pop(0) or _here)

from pydantic_core import from_json, to_json

from runner.models.double_answer import Reply, completion, events
from runner.models.double_faults import Fault, Faults
from runner.models.double_http import Connection, Request, response

Responder: TypeAlias = Callable[[dict[str, Any]], "Any | Awaitable[Any]"]
"""Takes the parsed request body; gives a text, an assistant message, a completion or a `Reply`, at once or awaited."""

_GARBAGE = b"<html><body>502 Bad Gateway</body></html>"


class Double:
    """The server. `port` 0 takes a free one.

    `latency` (seconds) passes before each answer, more or less by a share of it up to `jitter`. A completion that had
    to wait says so: its `latency` is what the server itself took, so that a client's own part can be told from it.
    `hear` is shown every request, with its path and headers, before it is answered.
    """

    def __init__(
        self,
        responder: Responder,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        latency: float = 0.0,
        jitter: float = 0.0,
        token_ids: bool = False,
        faults: list[Fault] | None = None,
        seed: int = 0,
        retry_after: str | None = None,
        hear: Callable[[Request], None] | None = None,
    ) -> None:
        self._responder = responder
        self._host = host
        self._port = port
        self._latency = latency
        self._jitter = jitter
        self._rng = Random(seed)
        self._token_ids = token_ids
        self._faults = Faults(faults or [], seed)
        self._retry_after = retry_after
        self._hear = hear
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self.requests = 0
        self.in_flight = 0
        self.max_in_flight = 0
        self.outcomes: Counter[str] = Counter()

    @property
    def port(self) -> int:
        assert self._server is not None, "the double is not running"
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        """`http://host:port`."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self.port}"

    @property
    def base_url(self) -> str:
        """What goes into `[model] base_url`."""
        return self.url + "/v1"

    async def __aenter__(self) -> Double:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connection, self._host, self._port, backlog=4096)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)

    def _connection(self) -> Connection:
        return Connection(self._handle, self._connections, self._lost)

    def _lost(self, connection: Connection) -> None:
        """A client left before its answer."""
        self.in_flight -= 1
        self.outcomes["gone"] += 1

    def _handle(self, connection: Connection, request: Request) -> None:
        if self._hear is not None:
            self._hear(request)
        path = request.path.partition("?")[0].rstrip("/")
        if path.endswith("/chat/completions") and request.method == "POST":
            self.requests += 1
            self.in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self.in_flight)
            self._chat(connection, request)
        elif path.endswith("/models") and request.method == "GET":
            models = [{"id": "double", "object": "model", "created": 1_700_000_000, "owned_by": "osmosis-run"}]
            connection.finish(response(200, to_json({"object": "list", "data": models})))
        elif path == "/stats" and request.method == "GET":
            connection.finish(response(200, to_json(self.stats())))
        else:
            connection.finish(response(404, _error(404, f"no {request.method} {path} here")))

    def stats(self) -> dict[str, Any]:
        """Counts of chat requests so far, and of open connections."""
        return {
            "requests": self.requests,
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "connections": len(self._connections),
            "outcomes": dict(self.outcomes),
        }

    def _chat(self, connection: Connection, request: Request) -> None:
        fault = self._faults.next()
        if fault is not None:
            self.outcomes[fault] += 1
            self._misbehave(connection, fault)
            return
        try:
            asked = from_json(request.body)
            if not isinstance(asked, dict) or not isinstance(asked.get("messages"), list):
                raise ValueError("`messages` is not a list")
        except ValueError as error:
            self.outcomes["400"] += 1
            self._answer(connection, 400, _error(400, f"the body is no chat request: {error}"))
            return
        try:
            said = self._responder(asked)
        except Exception as error:
            self._responder_failed(connection, error)
            return
        if inspect.isawaitable(said):
            connection.task = asyncio.ensure_future(self._chat_later(connection, asked, said))
        else:
            self._speak(connection, asked, said)

    async def _chat_later(self, connection: Connection, asked: dict[str, Any], said: Awaitable[Any]) -> None:
        try:
            answer = await said
        except Exception as error:
            self._responder_failed(connection, error)
        else:
            self._speak(connection, asked, answer)

    def _responder_failed(self, connection: Connection, error: Exception) -> None:
        self.outcomes["500"] += 1
        message = f"the responder raised {type(error).__name__}: {error}"
        self._answer(connection, 500, _error(500, message))

    def _speak(self, connection: Connection, asked: dict[str, Any], said: Any) -> None:
        if isinstance(said, Reply):
            self.outcomes[str(said.status)] += 1
            self._reply(connection, said)
            return
        try:
            answer = completion(asked, said, token_ids=self._token_ids)
            delay = self._delay()
            if delay > 0.0:
                answer["latency"] = delay
            if asked.get("stream"):
                usage = bool((asked.get("stream_options") or {}).get("include_usage"))
                body = b"".join(events(answer, include_usage=usage))
            else:
                body = to_json(answer)
        except Exception as error:
            self._responder_failed(connection, error)
            return
        self.outcomes["200"] += 1
        if asked.get("stream"):
            self._send(connection, _event_stream(body), delay)
        else:
            self._send(connection, response(200, body), delay)

    def _reply(self, connection: Connection, reply: Reply) -> None:
        data = response(reply.status, reply.body, reply.content_type, reply.headers)
        delay = self._delay()
        if reply.pause:
            rest = len(reply.body) - len(reply.body) // 2
            connection.write(data[: len(data) - rest])
            data, delay = data[len(data) - rest :], reply.pause
        self._send(connection, data, delay)

    def _misbehave(self, connection: Connection, fault: str) -> None:
        if fault == "hang":
            return
        if fault == "reset":
            self._end(connection, connection.reset)
        elif fault == "cut":
            whole = response(200, to_json(completion({}, "this answer will not be finished")))
            connection.write(whole[: len(whole) * 2 // 3])
            self._end(connection, connection.close)
        elif fault == "garbage":
            self._send(connection, response(200, _GARBAGE, "text/html"), self._delay())
        elif fault == "empty":
            self._answer(connection, 200, to_json({**completion({}, ""), "choices": []}))
        else:
            self._answer(connection, int(fault), _error(int(fault), "a fault that was asked for"))

    def _end(self, connection: Connection, how: Callable[[], None]) -> None:
        """Drop a connection whose request counts as answered."""
        self.in_flight -= 1
        connection.drop()
        how()

    def _answer(self, connection: Connection, status: int, body: bytes) -> None:
        headers: tuple[tuple[str, str], ...] = ()
        if status in (429, 503) and self._retry_after is not None:
            headers = (("retry-after", self._retry_after),)
        self._send(connection, response(status, body, headers=headers), self._delay())

    def _delay(self) -> float:
        return self._latency * (1.0 + self._jitter * self._rng.uniform(-1.0, 1.0)) if self._latency > 0.0 else 0.0

    def _send(self, connection: Connection, data: bytes, delay: float) -> None:
        if delay > 0.0:
            loop = asyncio.get_running_loop()
            connection.timer = loop.call_later(delay, self._finish, connection, data)
        else:
            self._finish(connection, data)

    def _finish(self, connection: Connection, data: bytes) -> None:
        self.in_flight -= 1
        connection.finish(data)


def _error(status: int, message: str) -> bytes:
    kind = "rate_limit_exceeded" if status == 429 else "server_error" if status >= 500 else "invalid_request_error"
    return to_json({"error": {"message": message, "type": kind, "code": status}})


def _event_stream(body: bytes) -> bytes:
    """A chunked event stream: servers do not know its length beforehand."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    middle = len(body) // 2  # two chunks, cut anywhere, as in life
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in (body[:middle], body[middle:]) if part)
    return head + chunks + b"0\r\n\r\n"


if __name__ == "__main__":
    from runner.models.double_command import main

    sys.exit(main())
