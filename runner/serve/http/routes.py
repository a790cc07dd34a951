"""`routes`: everything the server answers over HTTP, for any engine."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

from runner.serve.admission import Answer
from runner.serve.dialects.dialect import Dialect
from runner.serve.engine import Selector
from runner.serve.http.app import Request, Route, json_answer
from runner.serve.http.body import BodyLimits, decode, too_deep
from runner.serve.http.openapi import docs_page, document
from runner.serve.start import Refused
from runner.serve.urls import field_error

Chooser: TypeAlias = Callable[[Mapping[str, Any]], Dialect]
"""Tells by a decoded body which generation of the wire it is. May raise `Refused`."""

_SHUTTING_DOWN = {"retry-after": "5", "connection": "close"}
_ONE_SELECTOR = "pass exactly one selector: ids, prefix, or all"

log = logging.getLogger(__name__)


class Plays(Protocol):
    """What the routes need of an engine."""

    @property
    def draining(self) -> bool: ...
    async def start(
        self, dialect: Dialect, body: Mapping[str, Any], raw: bytes, headers: Sequence[tuple[bytes, bytes]] = ()
    ) -> Answer: ...
    async def status(self, rollout_id: str) -> dict[str, Any]: ...
    async def cancel(self, selector: Selector) -> dict[str, str]: ...


@dataclass(frozen=True, slots=True)
class Face:
    """What is told to whoever looks. `starts` are the paths of starts, each with what tells their dialect.

    `health` gives the body of `/health`; `metrics` (from an Accept header) the exposition and its content type, None
    for none. `started` is told the dialect and status of each start that was understood. `has_key` opens
    `/platform/health`. `instance_id` is the supervisor's name for this process.
    """

    starts: Mapping[str, Chooser]
    limits: BodyLimits
    health: Callable[[], Awaitable[Mapping[str, Any]]]
    metrics: Callable[[str], Awaitable[tuple[bytes, str]]] | None = None
    started: Callable[[str, int], None] | None = None
    has_key: bool = False
    instance_id: str = ""
    title: str = "osmosis-run"
    version: str = ""


def routes(engine: Plays, face: Face) -> list[Route]:
    """The routes, in the order in which `/docs` lists them."""
    api = document(face.title, face.version, tuple(face.starts), face.has_key, face.metrics is not None)
    page = docs_page(api)
    return [
        *(Route("POST", path, partial(_start, engine, face, chooser)) for path, chooser in face.starts.items()),
        Route("GET", "/rollout/{rollout_id}/status", partial(_status, engine)),
        Route("POST", "/rollout/cancel", partial(_cancel, engine, face.limits)),
        Route("GET", "/health", partial(_health, face), protected=False),
        Route("GET", "/platform/health", partial(_platform_health, face), protected=face.has_key),
        Route("GET", "/metrics", partial(_metrics, face), protected=False),
        Route("GET", "/openapi.json", partial(_fixed, json_answer(200, api)), protected=False),
        Route("GET", "/docs", partial(_fixed, Answer(200, page, {"content-type": "text/html; charset=utf-8"})),
              protected=False),
    ]  # fmt: skip


async def _start(engine: Plays, face: Face, chooser: Chooser, request: Request) -> Answer:
    closing = {"connection": "close"} if engine.draining else {}
    if closing:
        raise Refused(503, "server shutting down", _SHUTTING_DOWN)
    raw = await request.incoming.read(face.limits)
    body = await decode(raw, request.incoming.content_type, request.incoming.encoding)
    dialect = chooser(body)
    try:
        answer = await engine.start(dialect, body, raw, request.scope["headers"])
    except RecursionError:
        raise too_deep() from None
    except Refused as refused:
        _note(face, dialect, refused.status)
        if refused.status == 503 and engine.draining:
            refused.headers.update(_SHUTTING_DOWN)
        raise
    _note(face, dialect, answer.status)
    return answer


def _note(face: Face, dialect: Dialect, status: int) -> None:
    if face.started is not None:
        face.started(dialect.name, status)


async def _status(engine: Plays, request: Request) -> Answer:
    return json_answer(200, await engine.status(request.parts[0]))


async def _cancel(engine: Plays, limits: BodyLimits, request: Request) -> Answer:
    raw = await request.incoming.read(limits)
    selector = _selector(await decode(raw, request.incoming.content_type, request.incoming.encoding))
    if selector.prefix == "":
        log.warning('request %s cancels everything: its prefix is ""', request.request_id)
    return json_answer(200, {"dispositions": await engine.cancel(selector)})


def _selector(body: Mapping[str, Any]) -> Selector:
    """Whom a cancel is for. Raises `Refused` (422)."""
    ids, prefix, everything = body.get("ids"), body.get("prefix"), body.get("all", False)
    if ids is not None and not (isinstance(ids, list) and all(isinstance(each, str) for each in ids)):
        raise Refused(422, field_error("ids", "list_type", "must be a list of strings"))
    if prefix is not None and not isinstance(prefix, str):
        raise Refused(422, field_error("prefix", "string_type", "must be a string"))
    if everything is None:
        everything = False
    if not isinstance(everything, bool):
        raise Refused(422, field_error("all", "bool_type", "must be true or false"))
    if (ids is not None) + (prefix is not None) + everything != 1:
        raise Refused(422, _ONE_SELECTOR)
    return Selector(None if ids is None else tuple(ids), prefix, everything)


async def _health(face: Face, request: Request) -> Answer:
    found = await face.health()
    status = 503 if found["status"] == "failing" else 200  # nothing mends that but a new start
    if not face.instance_id:
        return json_answer(status, found)
    named = {**found, "instance_id": face.instance_id}
    return json_answer(status, named, {"x-osmosis-rollout-instance-id": face.instance_id})


async def _platform_health(face: Face, request: Request) -> Answer:
    """The first generation's second health check: known only where a key is, and in its own word for well."""
    if not face.has_key:
        raise Refused(404, "Not Found")
    found = await face.health()
    return json_answer(200, {**found, "status": "healthy" if found["status"] == "ok" else found["status"]})


async def _metrics(face: Face, request: Request) -> Answer:
    if face.metrics is None:
        raise Refused(404, "Not Found")
    text, content_type = await face.metrics(request.header(b"accept"))
    return Answer(200, text, {"content-type": content_type})


async def _fixed(answer: Answer, request: Request) -> Answer:
    return answer
