"""`pods/exec` of the stand-in: the channel protocols, versions 4 and 5, as a real kubelet was seen to speak them.

Recorded: a client that goes away, by a close or a reset, ends the input of the process and nothing else; a program that
is not there is an InternalError without an exit code; version 4 has no end of input; a frame over 32 MiB drops the
connection; the status is the last that is said, then a close with 1000.
"""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import suppress
from typing import Any

from aiohttp import WSMsgType, web

from tests.sandboxes.kubernetes.api_server.cluster import Cluster, StatusError
from tests.sandboxes.kubernetes.api_server.containers import Container

_PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_MOST = 32 << 20


def choose(cluster: Cluster, request: web.Request) -> str:
    """The protocol that is spoken. Raises `StatusError`, as a server that shares none was seen to: 403."""
    offered = [each.strip() for each in request.headers.get("Sec-WebSocket-Protocol", "").split(",")]
    for protocol in _PROTOCOLS[1:] if cluster.faults.v4_only else _PROTOCOLS:
        if protocol in offered:
            return protocol
    raise StatusError(403, "Forbidden", "unable to upgrade: no protocol in common")


def wants(request: web.Request, name: str) -> bool:
    return request.query.get(name, "") in ("true", "1")


async def serve(cluster: Cluster, request: web.Request, container: Container, protocol: str) -> web.WebSocketResponse:
    """Run the command that a request names, over its socket."""
    socket = web.WebSocketResponse(protocols=[protocol], max_msg_size=_MOST + 1, autoping=True)
    await socket.prepare(request)
    await Command(cluster, request, socket, container, protocol.startswith("v5")).run()
    return socket


class Command:
    """One command and the socket of its client, who may go at any time."""

    def __init__(
        self, cluster: Cluster, request: web.Request, socket: web.WebSocketResponse, container: Container, can_end: bool
    ) -> None:
        self._faults = cluster.faults
        self._request = request
        self._socket = socket
        self._container = container
        self._can_end = can_end
        self._sent = 0
        self._gone = False
        self._late: list[tuple[int, bytes]] = []

    async def run(self) -> None:
        (inner_in, stdin), (stdout, inner_out), (stderr, inner_err) = os.pipe(), os.pipe(), os.pipe()
        argv = self._request.query.getall("command")
        ended = await self._container.run(argv, (inner_in, inner_out, inner_err))
        for descriptor in (inner_in, inner_out, inner_err):
            os.close(descriptor)
        for channel in (1, 2, 3):
            await self._frame(channel, b"")
        if not wants(self._request, "stdin"):
            os.close(stdin)
        feeding = asyncio.ensure_future(self._feed(stdin if wants(self._request, "stdin") else None))
        telling = [asyncio.ensure_future(self._tell(1, stdout)), asyncio.ensure_future(self._tell(2, stderr))]
        try:
            status = _status(argv, await ended)
        except asyncio.CancelledError:  # the container was killed
            status = None
        await asyncio.wait(telling, timeout=None if status else 1.0)
        for task in telling:
            task.cancel()
        if status is not None and not self._faults.no_status:
            await self._frame(3, json.dumps(status).encode())
        for channel, data in self._late:
            await self._frame(channel, data)
        if not self._gone:
            await self._socket.close(code=1000)
        feeding.cancel()

    async def _feed(self, stdin: int | None) -> None:
        """Hand input to the process until it is ended, or the client has gone."""
        try:
            while True:
                message = await self._socket.receive()
                if message.type not in (WSMsgType.BINARY, WSMsgType.TEXT):
                    return
                data = message.data.encode() if message.type is WSMsgType.TEXT else message.data  # both are taken
                if self._can_end and data == b"\xff\x00":
                    if stdin is not None:
                        os.close(stdin)
                        stdin = None
                elif data[:1] == b"\0" and stdin is not None:
                    with suppress(BrokenPipeError):
                        await asyncio.to_thread(_write, stdin, data[1:])
        finally:
            if not self._socket.closed or self._socket.close_code != 1000:
                self._gone = True
            if stdin is not None:
                os.close(stdin)

    async def _tell(self, channel: int, stream: int) -> None:
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=1 << 17)
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(stream, "rb", 0)
        )
        try:
            while data := await reader.read(1 << 15):
                await self._output(channel, data)
        finally:
            transport.close()

    async def _output(self, channel: int, data: bytes) -> None:
        if self._faults.status_first:
            self._late.append((channel, data))
            return
        most = self._faults.drop_after
        if most is not None and self._sent + len(data) > most:
            await self._frame(channel, data[: most - self._sent])
            self._gone = True
            if self._request.transport is not None:
                self._request.transport.abort()
            return
        self._sent += len(data)
        await self._frame(channel, data)

    async def _frame(self, channel: int, data: bytes) -> None:
        if self._gone:
            return  # the process goes on, and nobody hears it
        pieces = [data[at : at + 1] for at in range(len(data))] if self._faults.split and data else [data]
        try:
            for piece in pieces:
                await self._socket.send_bytes(bytes([channel]) + piece)
        except (ConnectionError, RuntimeError):
            self._gone = True


def _write(stream: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(stream, view) :]


def _status(argv: list[str], told: dict[str, Any]) -> dict[str, Any]:
    if "error" in told:
        text = f'OCI runtime exec failed: exec failed: unable to start container process: exec: "{argv[0]}": '
        text = f"error executing command in container: {text}{told['error'].lower()}: unknown"
        return {
            "metadata": {},
            "status": "Failure",
            "message": f"Internal error occurred: {text}",
            "reason": "InternalError",
            "details": {"causes": [{"message": text}]},
            "code": 500,
        }
    code = 128 - told["code"] if told["code"] < 0 else told["code"]
    if code == 0:
        return {"metadata": {}, "status": "Success"}
    return {
        "metadata": {},
        "status": "Failure",
        "message": f"command terminated with non-zero exit code: error executing command {argv}, exit code {code}",
        "reason": "NonZeroExitCode",
        "details": {"causes": [{"reason": "ExitCode", "message": str(code)}]},
    }
