"""`Execution`: one command in a pod, from its request to its exit code, or to the certainty that nobody knows it.

The server goes on with a command whose client has gone. So a command is never ended by closing its socket: whoever
gives it up kills it by a second one (see `script.KILL`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

from runner.records.failure import SandboxError
from runner.sandboxes.kubernetes.api import Api
from runner.sandboxes.kubernetes.channels import CLOSE, ERROR, STDERR, STDOUT, V5, Ended, Status, frames
from runner.sandboxes.kubernetes.connection import Socket, UnreachableError
from runner.sandboxes.kubernetes.pods import CONTAINER
from runner.sandboxes.kubernetes.script import ALL_INPUT, BOOT, NO_INPUT, script
from runner.sandboxes.sandbox import Command

_AFTER = 2.0
"""Seconds that output may still come after the status: the streams have no order among each other."""


async def open_execution(
    api: Api, pod: str, command: Command, cwd: str, env: Mapping[str, str], *, goes_on: bool = False
) -> Execution:
    """Start `command`. `goes_on`: its input stays open, and its two streams are one.

    Raises `ApiError` when the server does not start it, `SandboxError` when it cannot be reached.
    """
    query = [*(("command", word) for word in BOOT), ("container", CONTAINER)]
    query += [("stdin", "true"), ("stdout", "true"), *([] if goes_on else [("stderr", "true")]), ("tty", "false")]
    socket = await api.open_exec(pod, query)
    can_end = socket.protocol == V5
    size = ALL_INPUT if goes_on or (command.stdin and can_end) else len(command.stdin) if command.stdin else NO_INPUT
    first = script(command.argv, cwd, env, size, merged=goes_on) + command.stdin
    return Execution(socket, first, end_input=can_end and not goes_on)


class Execution:
    """A command that was started. `first` is sent at once, while its output is heard."""

    def __init__(self, socket: Socket, first: bytes, *, end_input: bool) -> None:
        self._socket = socket
        self._status = Status()
        self._sending = asyncio.get_running_loop().create_task(self._send(first, end_input))

    async def hear(self, heard: Callable[[int, bytes], Awaitable[None] | None]) -> Ended:
        """Tell `heard` the output, stream by stream, until the command has ended.

        Waits while `heard` does. `Ended.code` is None when the server never said how.
        """
        try:
            while (frame := await self._next()) is not None:
                if not frame[1:]:
                    continue
                if frame[0] in (STDOUT, STDERR):
                    waited = heard(frame[0], frame[1:])
                    if waited is not None:
                        await waited
                elif frame[0] == ERROR:
                    self._status.add(frame[1:])
        except TimeoutError:
            pass  # the status is here, and whatever else was to come has had its time
        ended = self._status.ended
        if ended is not None:
            return ended
        said = self._status.said()
        return Ended(None, "the connection ended without its exit code" + (f": {said}" if said else ""))

    async def write(self, data: bytes) -> None:
        """More input. Raises `UnreachableError` when nobody takes it any more."""
        await asyncio.shield(self._sending)
        for frame in frames(data):
            await self._socket.send(frame)

    async def aclose(self) -> None:
        """Let go of the socket. The command goes on, its input ended."""
        self._sending.cancel()
        with suppress(asyncio.CancelledError):
            await self._sending
        await self._socket.close()

    async def _next(self) -> bytes | None:
        if self._status.ended is None:
            return await self._socket.receive()
        async with asyncio.timeout(_AFTER):
            return await self._socket.receive()

    async def _send(self, first: bytes, end_input: bool) -> None:
        try:
            for frame in frames(first):
                await self._socket.send(frame)
            if end_input:
                await self._socket.send(CLOSE)
        except UnreachableError:
            return  # it may have ended without reading its input; if not, hearing tells


def never_ran(ended: Ended) -> SandboxError:
    """The refusal of the runtime to start our shell."""
    message = f"the runtime cannot start /bin/sh in its image: {ended.trouble[:300]}"
    return SandboxError(message, kind="sandbox_unavailable")
