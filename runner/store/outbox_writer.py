"""`Writer`: the thread that writes the outbox. While it commits, more tasks gather, and go out with the next commit.

Nobody is told of success before the commit has returned and the file is still the one that was opened. A task that
cannot be written fails alone: its batch is halved until it is by itself.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sqlite3
import threading
from asyncio import AbstractEventLoop, Future, get_running_loop
from collections.abc import Callable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from queue import SimpleQueue
from time import monotonic, perf_counter, process_time, sleep
from typing import Any, TypeAlias

from runner.store.errors import NoRoom, StoreError, Unusable
from runner.store.outbox_tables import begin, explain, is_busy
from runner.store.outbox_writing import Contradiction, Kind, Task, write

BATCH_TASKS = 512
BATCH_BYTES = 32 << 20
"""What one transaction takes at most: others wait for it."""

_GATHER_EACH, _GATHER_MOST = 0.0004, 0.02
"""Seconds that a commit waits for company, for each task of the one before; and the most. A commit costs as much as ten
of its tasks: where thousands a second come, 20 ms spare a tenth of the processor."""
_SPARE = 0.7
"""How much of a processor this process must use before its commits wait at all: what is idle anyway is spared nothing
and answers later."""
_FREE_PAGES = 2000
_FREED_AT_ONCE = 2000

Answers: TypeAlias = list[tuple[Task, Any, StoreError | None]]

log = logging.getLogger(__name__)


class Writer:
    """Takes tasks from one event loop and writes them through `connection`, which it owns from now on."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        self._identity = _identity(path)
        self._loop: AbstractEventLoop | None = None
        self._coming: list[Task] = []  # the loop's, until the end of its turn
        self._handed: SimpleQueue[list[Task] | None] = SimpleQueue()
        self.closed = False
        self._lost: StoreError | None = None
        self._looked = process_time(), monotonic()
        self.heard: Callable[[float], None] | None = None
        self._thread = threading.Thread(target=self._write_forever, name=f"outbox {path.name}", daemon=True)
        self._thread.start()

    def put(self, task: Task) -> None:
        """Have a task written some time soon. Raises `StoreError` if the outbox is closed."""
        if self.closed:
            raise self.refusal()
        self._coming.append(task)
        if len(self._coming) > 1:
            return
        try:  # once for all that this turn of the loop brings: waking a thread costs more than a task
            self._loop = get_running_loop()
            self._loop.call_soon(self._hand_over)
        except RuntimeError:  # no loop is running: nobody else will bring anything
            self._hand_over()

    def refusal(self) -> StoreError:
        """What is raised once the outbox is closed."""
        return Unusable(f"{self._path}: the outbox is closed")

    def play(self, task: Task) -> Future[Any]:
        """Have a task written; done when it is on disk, or failed with a `StoreError`."""
        done: Future[Any] = get_running_loop().create_future()
        task.heard = partial(_tell, done)
        self.put(task)
        return done

    def shut(self) -> None:
        """Take no more. A second call does nothing."""
        if not self.closed:
            self.closed = True
            self._hand_over()
            self._handed.put(None)

    def join(self) -> None:
        """Wait until what was taken is written and the file closed: after `shut`, from any thread."""
        self._thread.join()

    def _hand_over(self) -> None:
        if self._coming:
            self._handed.put(self._coming)
            self._coming = []

    def _write_forever(self) -> None:
        pause = 0.0
        while waiting := self._next(pause):
            pause = self._pause(len(waiting))
            start = 0
            while start < len(waiting):
                end = _batch_end(waiting, start)
                batch = waiting[start:end]
                batch.sort(key=_kind)
                began = perf_counter()
                answers = self._play(batch)
                self._answer(answers, perf_counter() - began)
                start = end
        with contextlib.suppress(sqlite3.Error):  # what is committed stays; the next opening reads the log
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()

    def _next(self, pause: float) -> list[Task]:
        """What waits, `pause` seconds after something does. Empty when all is written."""
        waiting = self._handed.get()
        if waiting is None:
            return []
        if pause > 0:
            sleep(pause)
        while not self._handed.empty():
            more = self._handed.get()
            if more is None:
                self._handed.put(None)  # for the next time
                break
            waiting += more
        return waiting

    def _pause(self, tasks: int) -> float:
        """How long the next commit waits for company: by how much this one has, and how busy the process is."""
        used, now = process_time(), monotonic()
        busy = (used - self._looked[0]) / max(now - self._looked[1], 1e-9)
        self._looked = used, now
        if tasks < 2 or busy <= _SPARE:
            return 0.0
        return min(_GATHER_MOST, tasks * _GATHER_EACH) * min(1.0, (busy - _SPARE) / (1.0 - _SPARE))

    def _play(self, batch: Sequence[Task]) -> Answers:
        """Write a batch; the answer to each task."""
        try:
            results: list[Any] = self._tidy() if batch[0].kind is Kind.TIDY else self._commit(batch)
            return [(task, result, None) for task, result in zip(batch, results, strict=True)]
        except Exception as error:  # whatever it is, the callers are told and the thread lives on
            self._roll_back()
            if len(batch) > 1 and _is_of_one(error):
                half = len(batch) // 2
                return self._play(batch[:half]) + self._play(batch[half:])
            failure = self._failure(error)
            return [(task, None, failure) for task in batch]

    def _commit(self, batch: Sequence[Task]) -> list[Any]:
        self._check_there()
        begin(self._connection)
        results: list[Any] = []
        for kind, tasks in groupby(batch, _kind):
            results += write(self._connection, kind, list(tasks))
        self._connection.execute("COMMIT")
        self._check_there()
        return results

    def _roll_back(self) -> None:
        if self._connection.in_transaction:
            with contextlib.suppress(sqlite3.Error):  # then SQLite has rolled back by itself
                self._connection.execute("ROLLBACK")

    def _failure(self, error: Exception) -> StoreError:
        if isinstance(error, StoreError):
            return error
        if isinstance(error, sqlite3.Error):
            return explain(self._path, error)
        return StoreError(f"{self._path}: cannot be written: {type(error).__name__}: {error}")

    def _check_there(self) -> None:
        """A file that was deleted under us still takes writes, and nobody will ever read them."""
        if self._lost is None and _identity(self._path) != self._identity:
            self._lost = Unusable(
                f"{self._path}: was deleted or replaced while it was in use; what it held is lost",
                "start the server again: it makes a new file",
            )
        if self._lost is not None:
            raise self._lost

    def _tidy(self) -> list[bool]:
        """Give free pages back to the disk and empty the log, as far as other processes let us; True if more is free.

        A quarter of the file stays free for what comes next.
        """
        self._check_there()
        free = self._connection.execute("PRAGMA freelist_count").fetchone()[0]
        pages = self._connection.execute("PRAGMA page_count").fetchone()[0]
        excess = min(free - max(_FREE_PAGES, (pages - free) // 3), _FREED_AT_ONCE)
        try:
            if excess > 0:  # `execute` takes one step of this pragma, which is one page; a script takes them all
                self._connection.executescript(f"PRAGMA incremental_vacuum({excess})")
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            return [False]  # another process is writing: the next sweep does it
        self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return [excess == _FREED_AT_ONCE]

    def _answer(self, answers: Answers, seconds: float) -> None:
        told = [answer for answer in answers if answer[0].heard is not None or answer[2] is not None]
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop ended without waiting: nobody is left to be told
                self._loop.call_soon_threadsafe(self._deliver, told, seconds)

    def _deliver(self, answers: Answers, seconds: float) -> None:
        """On the loop: wake those who wait."""
        if self.heard is not None:
            self.heard(seconds)
        missed: StoreError | None = None
        for task, result, failure in answers:
            if failure is not None and task.note:
                missed = failure
            if task.heard is not None:
                try:
                    task.heard(result, failure)
                except Exception:  # the others must hear of theirs
                    log.exception("whoever waited for %s met a fault", task.attempt_id)
        if missed is not None:
            log.warning("what became of callbacks could not be written down: %s", missed)


def _tell(done: Future[Any], result: Any, failure: StoreError | None) -> None:
    if done.done():  # the task that waited was cancelled
        return
    if failure is None:
        done.set_result(result)
    else:
        done.set_exception(type(failure)(str(failure), failure.hint))


def _kind(task: Task) -> Kind:
    return task.kind


def _batch_end(waiting: Sequence[Task], start: int) -> int:
    """Where the batch that begins at `start` ends: within its bounds, and with no two tasks that could change places.

    Kinds are written in their order, so two tasks of one rollout share a batch only if theirs ascend. What was
    acknowledged is no rollout's: of that any number may share one.
    """
    last: dict[str, Kind] = {}
    size = 0
    for place in range(start, min(len(waiting), start + BATCH_TASKS)):
        task = waiting[place]
        size += task.size
        before = last.get(task.attempt_id, -1)
        again = before >= task.kind and not (before == task.kind == Kind.ACKNOWLEDGED)
        if place > start and (again or size > BATCH_BYTES):
            return place
        if task.kind is Kind.TIDY:
            return place if place > start else place + 1
        last[task.attempt_id] = task.kind
    return min(len(waiting), start + BATCH_TASKS)


def _is_of_one(error: Exception) -> bool:
    """True if one task alone may be to blame, or fewer of them may do: not the file, its lock, or its disk."""
    if isinstance(error, StoreError):
        return isinstance(error, Contradiction | NoRoom)
    if isinstance(error, sqlite3.OperationalError | sqlite3.DatabaseError):
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG, 0)
    return True


def _identity(path: Path) -> tuple[tuple[int, int] | None, ...]:
    """Which file and which log lie there now; None for one that does not."""
    found: list[tuple[int, int] | None] = []
    for name in (path, f"{path}-wal"):
        try:
            status = os.stat(name)  # noqa: PTH116 (twice a commit: a Path costs more than the call)
            found.append((status.st_dev, status.st_ino))
        except OSError:
            found.append(None)
    return tuple(found)
