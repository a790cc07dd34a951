"""The controller: an HTTP server that serves chat and receives callbacks of all three generations at once.

What it hears goes to the ledger; what it answers is what the protocol wants of a controller, or a fault. A request that
can be answered at once costs no task, so that the controller is not what a load test measures.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Awaitable
from typing import Any
from urllib.parse import unquote

from pydantic_core import to_json

from runner.models.double_http import Connection, Request, response
from runner.records.failure import ModelError
from runner.simulate.answers import Answers, failed, spoken
from runner.simulate.decode import bearer_findings, json_object, refused
from runner.simulate.faults import Faults
from runner.simulate.history import History
from runner.simulate.ledger import Ledger
from runner.simulate.misbehaviour import Misbehaviour, event_stream
from runner.simulate.routes import channel_in, rollout_in
from runner.simulate.starts import SINGLE_SAMPLE

_ELSEWHERE = "/elsewhere"
"""Where redirected callbacks are pointed: nobody should come."""


class Controller:
    """Listens on `host:port` (0: any free one) while it is entered.

    `token_ids` sends ids and log-probabilities with completions; `stall` is how long a stalled request is held.
    """

    def __init__(
        self,
        ledger: Ledger,
        answers: Answers,
        *,
        faults: Faults | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        token_ids: bool = False,
        stall: float = 12.0,
    ) -> None:
        self._ledger = ledger
        self._answers = answers
        self._faults = faults or Faults({})
        self._address = (host, port)
        self._token_ids = token_ids
        self._wrong = Misbehaviour(stall, _ELSEWHERE)
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._paused_until = 0.0
        self.requests: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()

    @property
    def url(self) -> str:
        """`http://host:port`."""
        host, port = self._address
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def __aenter__(self) -> Controller:
        await self._answers.open()
        await self._listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._leave()
        await self._answers.aclose()

    async def _listen(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connection, *self._address, backlog=4096)
        self._address = (self._address[0], self._server.sockets[0].getsockname()[1])

    async def _leave(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0)

    async def away(self, seconds: float) -> None:
        """Be gone: no port, no connections. Then listen again where it was."""
        await self._leave()
        await asyncio.sleep(seconds)
        await self._listen()

    def pause(self, seconds: float) -> None:
        """Answer everything with 429 for a while, saying when it will be over."""
        self._paused_until = self._ledger.now() + seconds

    def _connection(self) -> Connection:
        return Connection(self._handle, self._connections, lambda connection: None)

    def _handle(self, connection: Connection, request: Request) -> None:
        path = request.path.partition("?")[0]
        if path == "/health":
            self._answer(connection, 200, {"status": "healthy", "service": "osmosis-run simulate"})
        elif path.startswith(_ELSEWHERE):
            key = "with" if "authorization" in request.headers else "without"
            self._ledger.breach("redirect-followed", path, f"a callback came {key} its bearer key")
            self._answer(connection, 200, {"status": "ok"})
        elif request.method != "POST":
            self._answer(connection, 405, {"detail": "Method Not Allowed"})
        elif path.endswith("/chat/completions"):
            self._chat(connection, request, path)
        else:
            self._callback(connection, request, path)

    def _answer(self, connection: Connection, status: int, value: Any) -> None:
        connection.finish(response(status, to_json(value)))

    def _paused(self, connection: Connection, history: History, what: str) -> bool:
        left = self._paused_until - self._ledger.now()
        if left <= 0.0:
            return False
        self.faults["paused"] += 1
        if what != "chat":
            self._ledger.asked_to_wait(history, what, left)
        connection.finish(response(429, b'{"detail":"paused"}', headers=(("retry-after", f"{left:.2f}"),)))
        return True

    # chat

    def _chat(self, connection: Connection, request: Request, path: str) -> None:
        self.requests["chat"] += 1
        asked, findings = json_object(request.body)
        if asked is None:
            self._ledger.note_stray(findings, path)
            self._answer(connection, 400, {"detail": "invalid body"})
            return
        history = self._whose_chat(connection, request, path, asked)
        if history is None:
            return
        self._ledger.note(history, findings)
        self._ledger.chat(history, request.headers, asked)
        wrong = bearer_findings(request.headers.get("authorization"), history.chat_key)
        self._ledger.note(history, wrong)
        if refused(wrong):
            self._answer(connection, 401, {"detail": "unauthorized"})
            return
        if self._paused(connection, history, "chat"):
            return
        fault = history.next_fault("chat") or self._faults.draw("chat", history.rollout_id, history.chats)
        if fault not in (None, "ok"):
            self._chat_fault(connection, history, asked, str(fault))
        elif not isinstance(asked.get("messages"), list):
            self._answer(connection, 400, {"detail": "`messages` must be a list of objects"})
        else:
            self._speak(connection, history, asked)

    def _chat_fault(self, connection: Connection, history: History, asked: dict[str, Any], fault: str) -> None:
        self.faults[fault] += 1
        if fault == "chat-slow":
            loop = asyncio.get_running_loop()
            connection.timer = loop.call_later(1.0, self._speak, connection, history, asked)
        else:
            self._wrong.chat(connection, fault, stream=bool(asked.get("stream")))

    def _whose_chat(self, connection: Connection, request: Request, path: str, asked: dict[str, Any]) -> History | None:
        """The rollout that a chat call belongs to; None when it was answered with what it lacks."""
        headers = request.headers
        if path == "/v1/chat/completions":
            name, missing = asked.get("rollout_id"), ["rollout_id"]
            if name is None:
                self._ledger.breach("chat-body-id", "", "an agent-loop chat call without `rollout_id` in its body")
        elif path == "/chat/completions":
            missing = [header for header in ("x-rollout-id", "x-sample-id") if not headers.get(header)]
            name = None if missing else headers["x-rollout-id"]
            if missing:
                whose = headers.get("x-rollout-id", "")
                self._ledger.breach("chat-headers", whose, f"a chat call without {' and '.join(missing)}")
        else:
            name, missing = rollout_in(path), []
        if name is None:
            self._answer(connection, 400, {"detail": f"missing: {', '.join(missing)}"})
            return None
        history = self._ledger.histories.get(str(name)) or self._ledger.histories.get(unquote(str(name)))
        if history is None:
            self._ledger.breach("unknown-rollout", str(name), "a chat call for a rollout that was never started")
            self._answer(connection, 404, {"detail": "rollout not found"})
        return history

    def _speak(self, connection: Connection, history: History, asked: dict[str, Any]) -> None:
        try:
            said = history.reply if history.reply is not None else self._answers.answer(history, asked)
            if callable(said):
                said = said(history, asked)
        except ModelError as error:
            self._fail(connection, asked, str(error))
            return
        if inspect.isawaitable(said):
            connection.task = asyncio.ensure_future(self._speak_later(connection, history, asked, said))
        else:
            self._say(connection, history, asked, said)

    async def _speak_later(
        self, connection: Connection, history: History, asked: dict[str, Any], said: Awaitable[Any]
    ) -> None:
        try:
            answer = await said
        except ModelError as error:
            self._fail(connection, asked, str(error))
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            self._ledger.breach("chat-shape", history.rollout_id, f"{type(error).__name__}: {error}")
            self._answer(connection, 400, {"detail": "the body is no chat request"})
        else:
            self._say(connection, history, asked, answer)

    def _fail(self, connection: Connection, asked: dict[str, Any], message: str) -> None:
        self.requests["model failed"] += 1
        status, body, kind = failed(bool(asked.get("stream")), message)
        connection.finish(event_stream(body) if kind == "text/event-stream" else response(status, body))

    def _say(self, connection: Connection, history: History, asked: dict[str, Any], said: Any) -> None:
        body, kind = spoken(history, asked, said, token_ids=self._token_ids)
        self._ledger.completed(history, asked)
        connection.finish(event_stream(body) if kind == "text/event-stream" else response(200, body))

    # callbacks

    def _callback(self, connection: Connection, request: Request, path: str) -> None:
        self.requests["callback"] += 1
        payload, findings = json_object(request.body)
        found = channel_in(path, payload)
        if found is None:
            self._ledger.breach("unknown-rollout", path, f"nothing is received at {path}")
            self._answer(connection, 404, {"detail": "Not Found"})
            return
        dialect, channel = found
        name = rollout_in(path) if dialect == SINGLE_SAMPLE else str((payload or {}).get("rollout_id"))
        history = self._ledger.histories.get(str(name))
        if history is None or payload is None:
            self._stray(connection, dialect, str(name), (payload is None and findings) or [])
            return
        self._ledger.note(history, findings)
        self._receive(connection, request, history, channel, payload)

    def _stray(self, connection: Connection, dialect: str, name: str, findings: list[tuple[str, str]]) -> None:
        """A callback that belongs to nobody: only the last generation's controller refuses it."""
        self._ledger.note_stray(findings or [("unknown-rollout", "a callback for a rollout never started")], name)
        if dialect == SINGLE_SAMPLE:
            self._answer(connection, 422 if findings else 404, {"detail": "Not Found"})
        else:
            self._answer(connection, 200, {"status": "ok"})

    def _receive(
        self, connection: Connection, request: Request, history: History, channel: str, payload: dict[str, Any]
    ) -> None:
        wrong = bearer_findings(request.headers.get("authorization"), history.ask.callback_key)
        if "json" not in request.headers.get("content-type", ""):
            wrong.append(("content-type", f"the {channel} came as {request.headers.get('content-type')!r}"))
        self._ledger.note(history, wrong)
        if refused(wrong):
            self._answer(connection, 401, {"detail": "Unauthorized"})
            return
        tries = history.channels[channel].tries + 1
        self._ledger.callback(history, channel, payload, request.body)
        if history.dialect == SINGLE_SAMPLE and payload.get("rollout_id") not in (None, rollout_in(request.path)):
            self._answer(connection, 422, {"detail": "rollout_id does not match the path"})
            return
        if self._paused(connection, history, channel):
            return
        fault = history.next_fault(channel) or self._faults.draw(channel, history.rollout_id, tries)
        if fault in (None, "ok"):
            self._ledger.acknowledged(history, channel)
            self._answer(connection, 200, self._ack(history))
            return
        self.faults[str(fault)] += 1
        took = self._wrong.callback(connection, str(fault), to_json(self._ack(history)))
        if took.wait is not None:
            self._ledger.asked_to_wait(history, channel, took.wait)
        if took.final:
            self._ledger.closed(history, channel)
        if took.acknowledged:
            self._ledger.acknowledged(history, channel)

    def _ack(self, history: History) -> dict[str, Any]:
        """The same for every repetition: the first terminal word is final, whatever comes later."""
        if history.dialect != SINGLE_SAMPLE:
            return {"status": "ok"}
        return {"ok": True} if history.report is None else {"ok": True, "trajectory": dict(history.report)}
