"""`WatchedSandbox`: a sandbox whose loss is heard of, even when the code that used it swallows the error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from runner.records.failure import SandboxError
from runner.sandboxes.sandbox import Command, Entry, Ran, Running, Sandbox


class WatchedSandbox:
    """Tells `heard` each `SandboxError` that a method of `inner` raises, and raises it. `stop` is the owner's alone."""

    def __init__(self, inner: Sandbox, heard: Callable[[SandboxError], None]) -> None:
        self._inner = inner
        self._heard = heard

    @property
    def workdir(self) -> str:
        return self._inner.workdir

    async def exec(self, command: Command) -> Ran:
        with _heard(self._heard):
            return await self._inner.exec(command)

    async def start(self, command: Command) -> Running:
        with _heard(self._heard):
            return _WatchedRunning(await self._inner.start(command), self._heard)

    async def put(self, path: str, data: bytes, *, mode: int | None = None) -> None:
        with _heard(self._heard):
            await self._inner.put(path, data, mode=mode)

    async def get(self, path: str, *, limit: int | None = None) -> bytes:
        with _heard(self._heard):
            return await self._inner.get(path, limit=limit)

    async def list(self, path: str = ".") -> list[Entry]:
        with _heard(self._heard):
            return await self._inner.list(path)

    async def remove(self, path: str) -> None:
        with _heard(self._heard):
            await self._inner.remove(path)

    async def stop(self) -> None:
        await self._inner.stop()


class _WatchedRunning:
    def __init__(self, inner: Running, heard: Callable[[SandboxError], None]) -> None:
        self._inner = inner
        self._heard = heard

    async def write(self, data: bytes) -> None:
        with _heard(self._heard):
            await self._inner.write(data)

    async def read(self) -> bytes:
        with _heard(self._heard):
            return await self._inner.read()

    async def wait(self) -> int:
        with _heard(self._heard):
            return await self._inner.wait()

    async def kill(self) -> None:
        await self._inner.kill()


@contextmanager
def _heard(hear: Callable[[SandboxError], None]) -> Iterator[None]:
    try:
        yield
    except SandboxError as error:
        hear(error)
        raise
