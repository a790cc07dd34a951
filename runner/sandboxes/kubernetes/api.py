"""`Api`: the calls we make of a Kubernetes server, tried again where that can help, and its refusals in words."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import quote

from runner.records.failure import SandboxError
from runner.sandboxes.kubernetes.connection import Answer, Connection, Query, Socket, UnreachableError

_ATTEMPTS = 6
_MAX_PAUSE = 15.0
_AGAIN = (429, 500, 502, 503, 504)
EXEC_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")


class ApiError(Exception):
    """The server refused. `reason` is its word for it (`NotFound`, `Forbidden`), `status` the HTTP status."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class Api:
    """One namespace of a server. `pause` waits so many seconds between two tries."""

    def __init__(
        self, connection: Connection, namespace: str, *, pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    ) -> None:
        self.connection = connection
        self.namespace = namespace
        self._pause = pause

    @property
    def server(self) -> str:
        return self.connection.access.server

    async def call(
        self, method: str, path: str, body: Any = None, *, query: Query = (), kind: str = "json"
    ) -> dict[str, Any]:
        """What the server answers. Raises `ApiError`, or `SandboxError` when it cannot be reached."""

        async def once() -> Answer:
            return await self.connection.send(method, path, query=query, body=body, kind=kind)

        answer = await self._again(once)
        if answer.status >= 300:
            raise refusal(answer)
        try:
            read = json.loads(answer.body)
        except ValueError:
            read = None
        if not isinstance(read, dict):
            raise self._unavailable(f"it answered `{method} {path}` with something that is no object")
        return read

    async def create_pod(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """The pod as made. A second try that finds it there finds our own: its name is drawn by us alone."""
        try:
            return await self.call("POST", self.pods(), manifest)
        except ApiError as error:
            if error.status != 409 or error.reason != "AlreadyExists":
                raise
            return await self.call("GET", self.pods(manifest["metadata"]["name"]))

    async def delete_pod(self, name: str, uid: str | None) -> None:
        """Delete at once, without grace; no fault if it is gone, or another has its name."""
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        try:
            await self.call("DELETE", self.pods(name), options)
        except ApiError as error:
            if error.status not in (404, 409):
                raise

    async def watch(self, path: str, query: Query, seconds: float) -> AsyncGenerator[dict[str, Any], None]:
        """Events as they come. Ends when the server ends it. Raises `ApiError`, `UnreachableError`, `TimeoutError`."""
        async for line in self.connection.lines(path, query=query, seconds=seconds):
            if not line.strip():
                continue
            try:
                event = json.loads(line)
            except ValueError as error:
                raise UnreachableError("a watch was cut inside of an event", began=True) from error
            if event.get("kind") == "Status" and "type" not in event:
                raise _refused(event, int(event.get("code") or 500))
            if event.get("type") == "ERROR":
                raise _refused(event["object"], int(event["object"].get("code") or 500))
            yield event

    async def open_exec(self, pod: str, query: Query) -> Socket:
        """A socket to a command that was started. Raises `ApiError` (it was not started), `SandboxError`."""

        async def once() -> Socket | Answer:
            return await self.connection.socket(f"{self.pods(pod)}/exec", query=query, protocols=EXEC_PROTOCOLS)

        made: Socket | Answer = await self._again(once, safe=False)
        if isinstance(made, Answer):
            raise refusal(made)
        if made.protocol not in EXEC_PROTOCOLS:
            await made.close()
            raise self._unavailable(f"it speaks `{made.protocol}` to commands, and neither v5 nor v4")
        return made

    def pods(self, name: str | None = None) -> str:
        """The path of the namespace's pods, or of one."""
        path = f"/api/v1/namespaces/{quote(self.namespace)}/pods"
        return path if name is None else f"{path}/{quote(name)}"

    async def _again(self, once: Callable[[], Awaitable[Any]], *, safe: bool = True) -> Any:
        """`safe`: what may have been done already may be done again."""
        for attempt in range(_ATTEMPTS):
            last = attempt == _ATTEMPTS - 1
            wait = min(0.1 * 2**attempt, _MAX_PAUSE)
            try:
                answer = await once()
                if not isinstance(answer, Answer) or answer.status not in _AGAIN or last:
                    return answer
                if answer.status == 429 and _is_quota(answer):
                    return answer
                if answer.retry_after is not None:
                    wait = min(answer.retry_after, _MAX_PAUSE)
            except UnreachableError as error:
                if last or (error.began and not safe):
                    raise self._unavailable(str(error)) from error
            await self._pause(wait * (0.5 + random.random()))
        raise AssertionError("unreachable")

    def _unavailable(self, message: str) -> SandboxError:
        return SandboxError(f"the cluster at {self.server}: {message}", kind="sandbox_unavailable")


def refusal(answer: Answer) -> ApiError:
    """What a server says when it refuses: its Status, or the text that it sent instead."""
    try:
        told = json.loads(answer.body)
    except ValueError:
        told = None
    if isinstance(told, dict):
        return _refused(told, answer.status)
    said = answer.body.decode("utf-8", "replace").strip()[:300] or "no reason given"
    return ApiError(answer.status, "", f"HTTP {answer.status}: {said}")


def _refused(told: Mapping[str, Any], status: int) -> ApiError:
    return ApiError(status, str(told.get("reason") or ""), str(told.get("message") or f"HTTP {status}"))


def _is_quota(answer: Answer) -> bool:
    return b"quota" in answer.body and answer.retry_after is None
