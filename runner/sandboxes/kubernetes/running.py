"""`PodRunning`: a command in a pod that goes on; it has to wait when nobody reads what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from runner.sandboxes.kubernetes.connection import UnreachableError
from runner.sandboxes.kubernetes.execution import Execution

_MOST = 1 << 20
"""Bytes that wait to be read before the connection is not read any more."""


class PodRunning:
    """`kill` kills it and what it started, and returns when that was done."""

    def __init__(self, execution: Execution, kill: Callable[[], Awaitable[None]]) -> None:
        self._execution = execution
        self._kill = kill
        self._said = bytearray()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._over = asyncio.Event()
        self._code: int | Exception = 0

    async def heard(self, stream: int, data: bytes) -> None:
        """Part of what it said."""
        self._said += data
        self._news.set()
        if len(self._said) >= _MOST:
            self._room.clear()
            await self._room.wait()

    def end(self, code: int | Exception) -> None:
        """Nothing more comes. `code` is what `wait` gives, or raises."""
        if not self._over.is_set():
            self._code = code
            self._over.set()
            self._news.set()

    async def write(self, data: bytes) -> None:
        if self._over.is_set():
            raise BrokenPipeError("the command has ended")
        try:
            await self._execution.write(data)
        except UnreachableError as error:
            raise BrokenPipeError("the command has ended") from error

    async def read(self) -> bytes:
        while not self._said and not self._over.is_set():
            self._news.clear()
            await self._news.wait()
        data = bytes(self._said)
        self._said.clear()
        self._room.set()
        return data

    async def wait(self) -> int:
        await self._over.wait()
        if isinstance(self._code, Exception):
            raise self._code
        return self._code

    async def kill(self) -> None:
        if not self._over.is_set():
            self._room.set()
            await self._kill()
            self._room.set()
            await self._over.wait()
