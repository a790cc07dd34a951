"""`Outbox`: what was accepted, how it ended, and which callbacks are owed for it.

A call returns when its facts are on disk. One thread writes, and commits what waits in one transaction, so that
thousands of calls a second cost a few syncs; another reads. Several processes may have the same file open.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from json.encoder import encode_basestring_ascii
from pathlib import Path
from typing import Any, TypeVar

from runner.store import outbox_reading as reading
from runner.store.errors import StoreError, Unusable
from runner.store.outbox_records import CHANNELS, Accepted, Delivery, Known, Owed, Unfinished, Verdict
from runner.store.outbox_tables import begin, connect, connect_reader, explain
from runner.store.outbox_writer import Writer
from runner.store.outbox_writing import SWEPT_AT_ONCE, Contradiction, Kind, Task, Withdrawn, digest

__all__ = ["Accepted", "Contradiction", "Delivery", "Known", "Outbox", "Owed", "Unfinished", "Verdict", "Withdrawn"]

T = TypeVar("T")

_TOGETHER = 0.05
"""Seconds that what was acknowledged is collected: nobody waits for it, and after a crash it is only posted again."""

_REVIVE = """
    UPDATE owed SET state = 0, tries = 0, first_at = ?2, next_at = ?2
    WHERE state = 2 AND (?1 IS NULL OR (SELECT worker FROM rollouts r WHERE r.number = owed.place / 2) = ?1)
"""


class Outbox:
    """Open it with `open`, use it from one event loop, and close it.

    Every method raises `StoreError` when the file cannot be read or written (`NoRoom` when the disk is full); nothing
    of that call is stored then, and the next one may succeed. `Contradiction`: the rollout's state forbids the call;
    `Withdrawn`: because it was cancelled.
    """

    def __init__(self, path: Path, writer: Writer, reader: sqlite3.Connection, worker: int | None) -> None:
        self.path = path
        self._writer = writer
        self._reader = reader
        self._worker = worker
        self._taken: list[tuple[str, int]] = []
        self._reading = ThreadPoolExecutor(1, thread_name_prefix="outbox reader")

    @classmethod
    def open(cls, path: Path, *, worker: int | None = None) -> Outbox:
        """The outbox at `path`, made (with its folder) if it is not there; callbacks given up are owed again.

        With `worker`, `unfinished`, `owing` and `counts` tell of that worker's rollouts only. Raises `StoreError`.
        """
        connection = connect(path)
        try:
            begin(connection)
            connection.execute(_REVIVE, (worker, time.time()))
            connection.execute("COMMIT")
            reader = connect_reader(path)
        except sqlite3.Error as error:
            connection.close()
            raise explain(path, error) from None
        except BaseException:
            connection.close()
            raise
        return cls(path, Writer(path, connection), reader, worker)

    def on_commit(self, heard: Callable[[float], None]) -> None:
        """Have `heard` told, on the event loop, how many seconds each commit took that somebody waited for."""
        self._writer.heard = heard

    async def accept(self, rollout: Accepted) -> str | None:
        """Store a new rollout: None. If an attempt holds one of its keys already: that attempt's id, nothing stored."""
        holder: str | None = await self._writer.play(_accepting(rollout))
        return holder

    def accepting(self, rollout: Accepted, heard: Callable[[str | None, StoreError | None], None]) -> None:
        """`accept` for who does not wait: `heard` is told of its end, on the event loop, as soon as it has come."""
        task = _accepting(rollout)
        task.heard = heard
        self._writer.put(task)

    async def hold(self, attempt_id: str, left: bytes, owed: Sequence[Owed]) -> None:
        """The agent has ended: store what it left and what is owed for that. Raises `Contradiction` the second time."""
        size = len(left) + _size(owed)
        await self._writer.play(Task(Kind.HOLD, attempt_id, (attempt_id, left), _rows(attempt_id, owed), size))

    async def settle(self, attempt_id: str, verdict: Verdict, owed: Sequence[Owed], *, release: bool = False) -> None:
        """Store the verdict and what is owed for it, and erase the request. Raises `Contradiction` the second time.

        A channel that was owed before keeps the body it had: what was sent is never contradicted. With `release` it
        gives up its keys: the next start that has one is a new rollout.
        """
        stop_reason = _storable(verdict.stop_reason)
        message = verdict.message and _storable(verdict.message)
        values = (attempt_id, time.time(), verdict.status, stop_reason, verdict.reward, message)
        rows = _rows(attempt_id, owed)
        await self._writer.play(Task(Kind.SETTLE, attempt_id, values, rows, _size(owed), release=release))

    async def cancel(self, attempt_ids: Sequence[str]) -> None:
        """Whichever of these has no verdict yet gets none but that it was cancelled, whoever settles it. One write."""
        await self._writer.play(Task(Kind.CANCEL, "", (json.dumps(attempt_ids),)))

    async def withdraw(self, attempt_ids: Sequence[str]) -> None:
        """Settle these, of which nothing was said, as cancelled in one write; they give up their keys."""
        await self._writer.play(Task(Kind.WITHDRAW, "", (json.dumps(attempt_ids), time.time())))

    def acknowledged(self, attempt_id: str, channel: str) -> None:
        """A callback was taken: it is erased, with its bearer, soon. Not waited for: see `written`."""
        if self._writer.closed:
            raise self._writer.refusal()
        self._taken.append((attempt_id, _place(channel)))
        if len(self._taken) > 1:
            return
        try:
            asyncio.get_running_loop().call_later(_TOGETHER, self._note_taken)
        except RuntimeError:  # no loop is running: nobody else will bring anything
            self._note_taken()

    def _note_taken(self) -> None:
        """Have what was acknowledged lately erased in one go, if that has not happened before."""
        if self._taken:
            taken, self._taken = self._taken, []
            with contextlib.suppress(Unusable):  # closed meanwhile: `aclose` has seen to it
                self._writer.put(Task(Kind.ACKNOWLEDGED, "", (), taken, note=True))

    def tried(self, attempt_id: str, channel: str, tries: int, next_at: float, problem: str) -> None:
        """Note a try in vain. Not waited for: with the process or a full disk, only a count of tries is lost."""
        values = (attempt_id, _place(channel), tries, next_at, _storable(problem))
        self._writer.put(Task(Kind.TRIED, attempt_id, values, note=True))

    async def abandoned(self, attempt_id: str, channel: str, problem: str) -> None:
        """A callback is given up. It is kept and counted until it is swept, and owed again from the next `open`."""
        values = (attempt_id, _place(channel), _storable(problem), time.time())
        await self._writer.play(Task(Kind.ABANDONED, attempt_id, values))

    async def written(self) -> None:
        """Wait until all that was noted before is on disk, or is known not to be."""
        self._note_taken()
        await self._writer.play(Task(Kind.NOTHING, "", ()))

    async def adopt(self, workers: int) -> int:
        """Share the rollouts of workers that are no more among `workers`; how many. Call it before they open."""
        adopted: int = await self._writer.play(Task(Kind.ADOPT, "", (workers,)))
        return adopted

    async def sweep(self, before: float) -> int:
        """Drop, keys and all, what was settled before that time and owes nothing; how many. Then shrink the file.

        What was given up before that time counts as not owed.
        """
        self._note_taken()
        swept = SWEPT_AT_ONCE
        total = 0
        while swept == SWEPT_AT_ONCE:
            swept = await self._writer.play(Task(Kind.SWEEP, "", (before,)))
            total += swept
        while await self._writer.play(Task(Kind.TIDY, "", ())):
            pass
        return total

    async def unfinished(self) -> list[Unfinished]:
        """The rollouts without a verdict, in order of acceptance."""
        return await self._read(reading.unfinished, self._worker)

    async def to_cancel(self) -> list[str]:
        """The attempts that shall be cancelled and have no verdict yet."""
        return await self._read(reading.to_cancel, self._worker)

    async def owing(self, *, bodies: bool = True) -> list[Delivery]:
        """The callbacks nobody has acknowledged, in the order they came to be owed; if told so, with empty bodies."""
        return await self._read(reading.owing if bodies else reading.owing_briefly, self._worker)

    async def owed_of(self, wanted: Sequence[tuple[str, str]]) -> list[Owed | None]:
        """What is owed by each (attempt_id, channel), in their order; None where nothing is any more."""
        return await self._read(reading.owed_of, wanted)

    async def find(self, rollout_id: str) -> Known | None:
        """The latest attempt with that wire id, whichever worker's."""
        return await self._read(reading.find, rollout_id)

    async def attempt(self, attempt_id: str) -> Known | None:
        """What is known of one attempt; None once it is swept."""
        return await self._read(reading.attempt, attempt_id)

    async def holder(self, keys: Sequence[str]) -> str | None:
        """The attempt that holds one of these keys."""
        return await self._read(reading.holder, [digest(key) for key in keys])

    async def by_prefix(self, prefix: str) -> list[Known]:
        """The attempts without a verdict whose wire id begins so, whichever worker's; all of them for ""."""
        return await self._read(reading.by_prefix, prefix)

    async def counts(self) -> Mapping[str, int]:
        """How many: rollouts `accepted` (agent not ended) and `held` (not graded), callbacks `owed` and `abandoned`."""
        return await self._read(reading.counts, self._worker)

    async def aclose(self) -> None:
        """Write what waits and close the file. A second call does nothing."""
        self._note_taken()
        self._writer.shut()
        await asyncio.to_thread(self._writer.join)
        await asyncio.to_thread(self._reading.shutdown)
        self._reader.close()

    async def _read(self, query: Callable[[sqlite3.Connection, Any], T], argument: Any) -> T:
        if self._taken:  # whoever asks hears of it
            await self.written()
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._reading, partial(query, self._reader, argument)
            )
        except sqlite3.Error as error:
            raise explain(self.path, error) from None
        except RuntimeError:  # the thread takes no more work
            raise StoreError(f"{self.path}: the outbox is closed") from None


def _accepting(rollout: Accepted) -> Task:
    keys = rollout.keys
    values = (
        rollout.attempt_id,
        reading.blob(rollout.rollout_id),
        rollout.worker,
        rollout.dialect,
        rollout.accepted_at,
        f"[{', '.join(map(encode_basestring_ascii, keys))}]",
        rollout.request,
    )
    digests = [(digest(key), rollout.attempt_id) for key in dict.fromkeys(keys)]
    return Task(Kind.ACCEPT, rollout.attempt_id, values, digests, len(rollout.request))


def _rows(attempt_id: str, owed: Sequence[Owed]) -> list[tuple[Any, ...]]:
    now = time.time()
    return [(attempt_id, _place(one.channel), _storable(one.url), one.key, one.body, now) for one in owed]


_place = CHANNELS.index
"""Which of a rollout's callbacks one is. Raises ValueError for a channel that there is not."""


def _size(owed: Sequence[Owed]) -> int:
    size = 0
    for one in owed:
        size += len(one.body)
    return size


def _storable(text: str) -> str:
    """The text with a mark for each half of a surrogate pair, which UTF-8 cannot hold."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
