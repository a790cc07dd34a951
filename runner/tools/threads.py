"""`Threads`: where synchronous tools run, so that they cannot hold the event loop.

They are daemon threads of our own, not those of an executor: an executor waits for its threads when the process ends,
and one tool that never returns would keep a finished run from exiting.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future

_IDLE_SECONDS = 10.0

_Work: TypeAlias = "tuple[Callable[[], Any], Future[Any], AbstractEventLoop]"


class Threads:
    """As many threads as there is work at once; each ends after ten idle seconds. The caller bounds the work."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: SimpleQueue[_Work] = SimpleQueue()
        self._lock = Lock()
        self._idle = 0

    def start(self, work: Callable[[], Any]) -> Future[Any]:
        """Run `work` in a thread, in a copy of the caller's context.

        The future cannot stop the thread: cancelling or forgetting it only means that nobody hears the result.
        """
        from asyncio import get_running_loop

        loop = get_running_loop()
        heard: Future[Any] = loop.create_future()
        context = copy_context()
        with self._lock:
            self._queue.put((lambda: context.run(work), heard, loop))
            if self._idle:
                self._idle -= 1
                return heard
        Thread(target=self._serve, name=f"tool {self._name}", daemon=True).start()
        return heard

    def _serve(self) -> None:
        while True:
            try:
                work, heard, loop = self._queue.get(timeout=_IDLE_SECONDS)
            except Empty:
                with self._lock:
                    if not self._queue.empty():
                        continue  # work came in the moment between the two lines above, counting on us
                    self._idle -= 1
                    return
            _do(work, heard, loop, self._rest)
            del work, heard, loop  # an idle thread must not keep a big result alive

    def _rest(self) -> None:
        with self._lock:
            self._idle += 1


def _do(work: Callable[[], Any], heard: Future[Any], loop: AbstractEventLoop, rest: Callable[[], None]) -> None:
    result: Any = None
    error: BaseException | None = None
    try:
        result = work()
    except BaseException as raised:  # it travels to whoever waits; a dead thread would leave them waiting
        error = raised
    rest()  # before the result is told, so that a caller who asks again at once finds this thread idle
    try:
        loop.call_soon_threadsafe(_tell, heard, result, error)
    except RuntimeError:
        return  # the loop has closed: nobody is left to hear


def _tell(heard: Future[Any], result: Any, error: BaseException | None) -> None:
    if heard.done():
        return
    if error is None:
        heard.set_result(result)
    else:
        heard.set_exception(error)
