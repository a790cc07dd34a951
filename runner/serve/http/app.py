"""`App`: the ASGI face of the server. A request goes key, then body, then JSON, then what it asks for.

Routes are a list, and there is no framework: it would cost a tenth of what a request costs (`benchmarks/servers.py`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import count
from secrets import token_hex
from time import monotonic, time
from typing import Any, TypeAlias
from urllib.parse import unquote_to_bytes
from wsgiref.handlers import format_date_time

from runner.serve.admission import Answer
from runner.serve.http.access import Access
from runner.serve.http.body import Arrived, Body, Gone, Incoming, Message, Receive
from runner.serve.start import Refused
from runner.store.errors import StoreError

Send: TypeAlias = Callable[[Message], Awaitable[None]]
Headers: TypeAlias = list[tuple[bytes, bytes]]
Heard: TypeAlias = Callable[[str, str, int, float], None]

_JSON = {"content-type": "application/json"}
_IS_JSON = (b"content-type", b"application/json")
_LATER = {"retry-after": "5"}
_SEND = 60.0
"""Seconds that an HTTP/2 peer has to take a part of an answer."""
_SANE_ID = re.compile(rb"[!-~]{1,128}")

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Request:
    """One request, admitted. `parts` is what the route's pattern found in the path, percent-decoded."""

    scope: Mapping[str, Any]
    incoming: Body
    request_id: str
    parts: tuple[str, ...] = ()

    def header(self, name: bytes) -> str:
        """The last header of that (lower-case) name, or an empty text."""
        return next((value.decode("latin-1") for key, value in reversed(self.scope["headers"]) if key == name), "")


Responder: TypeAlias = Callable[[Request], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Route:
    """`path` is literal, or has one `{…}` that takes anything. `protected` asks for the key."""

    method: str
    path: str
    responder: Responder
    protected: bool = True


class App:
    """An ASGI application. `heard` is told (method, route, status, seconds) of each answer; "" is no route of ours.

    `faults` counts the answers 500: each is a bug of ours, logged with its traceback.
    """

    def __init__(self, routes: Iterable[Route], access: Access, heard: Heard | None = None) -> None:
        self._fixed: dict[str, dict[str, Route]] = {}
        self._open: list[tuple[re.Pattern[bytes], dict[str, Route]]] = []
        by_path: dict[str, dict[str, Route]] = {}
        for route in routes:
            by_path.setdefault(route.path, {})[route.method] = route
        for path, methods in by_path.items():
            if "GET" in methods:
                methods["HEAD"] = methods["GET"]
            if "{" in path:
                self._open.append((_pattern(path), methods))
            else:
                self._fixed[path] = methods
        self._access = access
        self._heard = heard
        self._prefix = token_hex(6)
        self._number = count(1)
        self._second, self._date = 0, (b"date", b"")
        self.faults = 0

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """One HTTP request. Anything else is told that nobody is here for it."""
        if scope["type"] == "http":
            await self._respond(scope, receive, send)
        elif scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1003})

    async def _respond(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        began = monotonic()
        http1 = scope["http_version"][0] == "1"
        incoming = Incoming(receive, scope["headers"], http1)
        request = Request(scope, incoming, self._request_id(scope["headers"]))
        try:
            endpoint, answer = await self._answer(request)
            headers = self._headers(request, answer)
            if not http1:
                headers = [header for header in headers if header[0] != b"connection"]
            await _send(answer, headers, send if http1 else _while_there(send, incoming), incoming)
        except Gone:
            return
        if self._heard is not None:
            self._heard(scope["method"], endpoint, answer.status, monotonic() - began)

    async def reply(self, scope: Mapping[str, Any], body: bytes) -> tuple[int, Headers, bytes]:
        """The same for a request that came whole, without a message: status, headers and body of its answer."""
        began = monotonic()
        headers = scope["headers"]
        request = Request(scope, Arrived(body, headers), self._request_id(headers))
        endpoint, answer = await self._answer(request)
        if self._heard is not None:
            self._heard(scope["method"], endpoint, answer.status, monotonic() - began)
        return answer.status, self._headers(request, answer), answer.body

    async def _answer(self, request: Request) -> tuple[str, Answer]:
        """The route's path, "" for none, and what it answers. Raises `Gone`."""
        scope, endpoint = request.scope, ""
        try:
            route = self._route(request)
            endpoint = route.path
            if route.protected and not self._access.admits(scope["headers"]):
                raise Refused(401, "Invalid or missing API key")
            if route.protected and self._access.is_for_a_page(scope["headers"]):
                raise Refused(403, "without `serve.api_key` pages in a browser are not served")
            return endpoint, await route.responder(request)
        except Refused as refused:
            return endpoint, refusal(refused)
        except Gone:
            raise
        except StoreError as error:
            log.error("request %s cannot be answered: %s (%s)", request.request_id, error, error.hint)
            return endpoint, json_answer(503, {"detail": "the server cannot read its state now; retry later"}, _LATER)
        except Exception:
            self.faults += 1
            log.exception("request %s met a fault of the server: %s %s", request.request_id, scope["method"], endpoint)
            told = {"detail": f"a fault of the server, logged as request {request.request_id}"}
            return endpoint, json_answer(500, told)

    def _route(self, request: Request) -> Route:
        """The route of a request. Raises `Refused` (404, 405)."""
        scope = request.scope
        methods = self._fixed.get(scope["path"]) if not scope.get("root_path") else None
        if methods is None:
            methods = self._open_route(request)
        route = methods.get(scope["method"])
        if route is None:
            raise Refused(405, "Method Not Allowed", {"allow": ", ".join(sorted(methods))})
        return route

    def _open_route(self, request: Request) -> dict[str, Route]:
        raw: bytes = request.scope["raw_path"]
        if not raw.startswith(b"/"):  # `GET http://host/path`, as proxies ask
            raw = b"/" + raw.partition(b"://")[2].partition(b"/")[2]
        raw = raw.removeprefix(request.scope.get("root_path", "").encode())
        if (methods := self._fixed.get(raw.decode("latin-1"))) is not None:
            return methods
        for pattern, methods in self._open:
            found = pattern.fullmatch(raw)
            if found is not None:
                try:
                    request.parts = tuple(unquote_to_bytes(part).decode() for part in found.groups())
                except UnicodeDecodeError:
                    break
                return methods
        raise Refused(404, "Not Found")

    def _request_id(self, headers: Sequence[tuple[bytes, bytes]]) -> str:
        for name, value in headers:
            if name == b"x-request-id" and _SANE_ID.fullmatch(value) is not None:
                return value.decode("ascii")
        return f"{self._prefix}-{next(self._number):x}"

    def _headers(self, request: Request, answer: Answer) -> Headers:
        headers: Headers = []
        if answer.headers:
            headers += [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()]
        if "content-type" not in answer.headers:
            headers.append(_IS_JSON)
        headers.append((b"content-length", b"%d" % len(answer.body)))
        now = int(time())
        if self._second != now:
            self._second, self._date = now, (b"date", format_date_time(now).encode("ascii"))
        headers.append(self._date)
        headers.append((b"x-request-id", request.request_id.encode()))
        return headers


async def _send(answer: Answer, headers: Headers, send: Send, incoming: Incoming) -> None:
    body = answer.body
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    if answer.status >= 400 and not incoming.ended:
        # The peer may still be sending: it gets its answer now, and the connection goes on if the rest is short.
        await send({"type": "http.response.body", "body": body, "more_body": True})
        await incoming.discard()
        body = b""
    await send({"type": "http.response.body", "body": body})


def json_answer(status: int, value: Any, headers: Mapping[str, str] | None = None) -> Answer:
    """An answer whose body is JSON, whatever stands in it: a number that JSON lacks becomes null."""
    try:
        body = json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        body = json.dumps(json.loads(json.dumps(value), parse_constant=lambda _: None), separators=(",", ":"))
    return Answer(status, body.encode("ascii"), {**_JSON, **(headers or {})})


def refusal(refused: Refused) -> Answer:
    """The answer that a `Refused` stands for."""
    return json_answer(refused.status, {"detail": refused.detail}, refused.headers)


def _pattern(path: str) -> re.Pattern[bytes]:
    before, _, after = re.sub(r"\{[^}]*\}", "{}", path).partition("{}")
    return re.compile(b"%s(.+)%s" % (re.escape(before.encode()), re.escape(after.encode())))


def _while_there(send: Send, incoming: Incoming) -> Send:
    """`send` that raises `Gone` when an HTTP/2 peer leaves or takes nothing any more.

    Hypercorn's own waits for ever to hand a body to a stream that has ended: each such request would keep its task and
    its connection for as long as the process lives.
    """

    async def sending(message: Message) -> None:
        sent, gone = asyncio.ensure_future(send(message)), asyncio.ensure_future(incoming.gone())
        try:
            await asyncio.wait({sent, gone}, timeout=_SEND, return_when=asyncio.FIRST_COMPLETED)
            if not sent.done():
                raise Gone
            sent.result()
        finally:
            sent.cancel()
            gone.cancel()
            await asyncio.wait({sent, gone})

    return sending


async def _live(receive: Receive, send: Send) -> None:
    """What an ASGI server says when it starts and stops: others open and close what we need."""
    while True:
        message: MutableMapping[str, Any] = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            await asyncio.sleep(0)
            return
