"""`Threads`: where synchronous graders run, so that they cannot hold the event loop.

Daemon threads of our own, not those of an executor: an executor waits for its threads when the process ends, and one
grader that never returns would keep a finished run from exiting. A thread that was given up keeps its slot until it
ends, so that hung graders cannot pile up.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import asyncio

_IDLE_SECONDS = 10.0

_Work: TypeAlias = "tuple[Callable[[], Any], asyncio.Future[Any], asyncio.AbstractEventLoop]"


class Threads:
    """At most `limit` threads, started as they are needed; each ends after ten idle seconds."""

    def __init__(self, limit: int = 32) -> None:
        self._limit = limit
        self._queue: SimpleQueue[_Work] = SimpleQueue()
        self._lock = Lock()
        self._running = 0
        self._waiting = 0
        """Work that was put and not yet taken, less the threads that will take it."""

    async def run(self, work: Callable[[], Any]) -> Any:
        """The result of `work()`, or its exception. Cancelling gives the thread up; it cannot be stopped."""
        from asyncio import get_running_loop

        loop = get_running_loop()
        heard: asyncio.Future[Any] = loop.create_future()
        context = copy_context()
        with self._lock:
            self._queue.put((lambda: context.run(work), heard, loop))
            self._waiting += 1
            start = self._waiting > 0 and self._running < self._limit
            self._running += start
        if start:
            Thread(target=self._serve, name="grader", daemon=True).start()
        done, result = await heard
        if not done:
            raise result
        return result

    def _serve(self) -> None:
        while True:
            with self._lock:
                self._waiting -= 1  # this thread is ready for one
            try:
                work, heard, loop = self._queue.get(timeout=_IDLE_SECONDS)
            except Empty:
                with self._lock:
                    self._waiting += 1
                    if not self._queue.empty():
                        continue  # work came in the moment between the two lines above, counting on us
                    self._running -= 1
                return
            # Somebody may have stopped listening while this was queued.
            if not heard.cancelled():
                _tell(loop, heard, *_outcome(work))
            del work, heard, loop  # an idle thread must not keep a big result alive


def _outcome(work: Callable[[], Any]) -> tuple[bool, Any]:
    # As a pair: a future refuses to carry StopIteration, and SystemExit would end the loop that hears it.
    try:
        return True, work()
    except BaseException as error:
        return False, error


def _tell(loop: asyncio.AbstractEventLoop, heard: asyncio.Future[Any], done: bool, result: Any) -> None:
    def hear() -> None:
        if not heard.done():
            heard.set_result((done, result))

    try:
        loop.call_soon_threadsafe(hear)
    except RuntimeError:
        return  # the loop has closed: nobody is left to hear
