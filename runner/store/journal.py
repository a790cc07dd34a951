"""`Journal`: an append-only file of JSON lines. What `append` has answered is on disk.

One thread writes. While it waits for the disk, more records gather, and they go out with the next sync: thousands of
appends at once cost a few syncs. Reading is in `journal_reading`.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from runner.store.errors import StoreError, not_written
from runner.store.record import encode
from runner.store.run_folder import sync_folder

if TYPE_CHECKING:
    import asyncio

MAX_WAITING = 64 << 20
"""Bytes that may wait for the disk before `append` waits for room first."""

_AGAIN = "run the same command again once it is mended"


@dataclass(slots=True)
class _Waiting:
    """A line that is not on disk yet, and who wants to know when it is."""

    line: bytes
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[int]


class Journal:
    """Open for appending from one event loop. Close it, or use it as an async context manager.

    After a failed write it takes no more records: the error says why, and the file ends with the last whole batch.
    """

    def __init__(self, path: Path, descriptor: int, end: int, max_waiting: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._end = end
        self._max_waiting = max_waiting
        self._waiting: list[_Waiting] = []
        self._waiting_bytes = 0
        self._starved: list[asyncio.Future[None]] = []
        self._failure: StoreError | None = None
        self._closing = False
        self._wake = threading.Condition()
        self._writer = threading.Thread(target=self._write_forever, name=f"journal {path.name}", daemon=True)
        self._writer.start()

    @classmethod
    def open(cls, path: Path, *, max_waiting: int = MAX_WAITING) -> Journal:
        """The journal at `path`, made if it is not there.

        A torn last line (of a process that was killed) is moved to `<name>.torn`, so that nothing is glued to it.
        Raises `StoreError`.
        """
        from runner.store.journal_reading import mend_tail

        made = not path.exists()
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise not_written(path, error, what="opened") from None
        try:
            end = mend_tail(path, descriptor)
            if made:
                sync_folder(path.parent)
        except OSError as error:
            os.close(descriptor)
            raise not_written(path, error, _AGAIN) from None
        return cls(path, descriptor, end, max_waiting)

    @property
    def size(self) -> int:
        """Bytes that are on disk."""
        return self._end

    async def append(self, record: Mapping[str, Any] | bytes) -> int:
        """Write one record and return its offset once it is on disk. Raises `StoreError` if it is not.

        The record is encoded at once, so it may be changed afterwards. Bytes are taken as they are: one line of JSON.
        """
        import asyncio

        line = record if isinstance(record, bytes) else encode(record)
        if not line.endswith(b"\n"):
            line += b"\n"
        loop = asyncio.get_running_loop()
        while self._waiting_bytes > self._max_waiting and self._failure is None:
            room: asyncio.Future[None] = loop.create_future()
            self._starved.append(room)
            await room
        done: asyncio.Future[int] = loop.create_future()
        with self._wake:
            if self._failure is not None:
                raise type(self._failure)(str(self._failure), self._failure.hint)
            if self._closing:
                raise StoreError(f"{self.path}: the journal is closed")
            self._waiting.append(_Waiting(line, loop, done))
            self._waiting_bytes += len(line)
            self._wake.notify()
        return await done

    async def aclose(self) -> None:
        """Write what waits and close the file, without holding up the loop."""
        import asyncio

        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Write what waits and close the file. A second call does nothing."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._writer.join()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    async def __aenter__(self) -> Journal:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def _write_forever(self) -> None:
        while batch := self._next_batch():
            offsets: list[int] = []
            failure = self._failure
            if failure is None:
                try:
                    offsets = self._write(batch)
                except OSError as error:
                    failure = self._give_up(error)
            self._answer(batch, offsets, failure)

    def _next_batch(self) -> list[_Waiting]:
        """What waits, as soon as something does; empty when the journal is closing and nothing is left."""
        with self._wake:
            while not self._waiting and not self._closing:
                self._wake.wait()
            batch, self._waiting = self._waiting, []
            return batch

    def _write(self, batch: list[_Waiting]) -> list[int]:
        offsets = []
        end = self._end
        for waiting in batch:
            offsets.append(end)
            end += len(waiting.line)
        left = memoryview(b"".join([waiting.line for waiting in batch]))
        while left:
            left = left[os.write(self._descriptor, left) :]
        os.fdatasync(self._descriptor)
        self._end = end
        return offsets

    def _give_up(self, error: OSError) -> StoreError:
        """Cut what was half written, and refuse all that comes after: what the disk took is no longer certain."""
        failure = not_written(self.path, error, _AGAIN)
        try:
            os.ftruncate(self._descriptor, self._end)
            os.fdatasync(self._descriptor)
        except OSError as second:
            failure = type(failure)(f"{failure}; its last line may be torn ({second.strerror})", failure.hint)
        with self._wake:
            self._failure = failure
        return failure

    def _answer(self, batch: list[_Waiting], offsets: list[int], failure: StoreError | None) -> None:
        size = sum(len(waiting.line) for waiting in batch)
        answers: list[tuple[asyncio.Future[int], int]] = []
        for place, waiting in enumerate(batch):
            answers.append((waiting.done, offsets[place] if failure is None else -1))
        with contextlib.suppress(RuntimeError):  # the loop ended without waiting: nobody is left to be told
            batch[0].loop.call_soon_threadsafe(self._deliver, answers, size, failure)

    def _deliver(self, answers: list[tuple[asyncio.Future[int], int]], size: int, failure: StoreError | None) -> None:
        """On the loop: wake those whose records are written, and those who wait for room."""
        self._waiting_bytes -= size
        for done, offset in answers:
            if done.done():  # its task was cancelled
                continue
            if failure is None:
                done.set_result(offset)
            else:
                done.set_exception(type(failure)(str(failure), failure.hint))
        if failure is not None or self._waiting_bytes <= self._max_waiting:
            starved, self._starved = self._starved, []
            for room in starved:
                if not room.done():
                    room.set_result(None)
