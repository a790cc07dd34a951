"""`ProcessRunning`: a `Running` over a child process, which has to wait when nobody reads what it says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from runner.sandboxes.process import Process

_MOST = 1 << 20
"""Bytes that wait to be read before the command has to."""


class ProcessRunning:
    """Made first, then begun with its process: what the process says meanwhile is not lost."""

    def __init__(self) -> None:
        self._said = bytearray()
        self._news = asyncio.Event()
        self._over = asyncio.Event()
        self._ending = False
        self._code: int | Exception = 0

    def begin(self, process: Process, kill: Callable[[], None]) -> None:
        """`kill` kills it and everything it started."""
        self._process = process
        self._kill = kill

    def heard(self, stream: Literal["out", "err"], data: bytes) -> None:
        """Part of what the process said."""
        self._said += data
        self._news.set()
        if len(self._said) >= _MOST and not self._ending:
            self._process.pause(True)

    async def drained(self) -> None:
        """The process has exited: hear the last of it, which is no more than its pipe holds."""
        self._ending = True
        self._process.pause(False)
        await self._process.drained()

    def end(self, code: int | Exception) -> None:
        """Nothing more comes. `code` is what `wait` gives, or raises."""
        self._code = code
        self._over.set()
        self._news.set()

    async def write(self, data: bytes) -> None:
        if self._process.ended:
            raise BrokenPipeError("the command has ended")
        self._process.feed(data)
        await self._process.fed()

    async def read(self) -> bytes:
        while not self._said and not self._over.is_set():
            self._news.clear()
            await self._news.wait()
        data = bytes(self._said)
        self._said.clear()
        if not self._ending:
            self._process.pause(False)
        return data

    async def wait(self) -> int:
        await self._over.wait()
        if isinstance(self._code, Exception):
            raise self._code
        return self._code

    async def kill(self) -> None:
        if not self._over.is_set():
            self._kill()
            await self._over.wait()
