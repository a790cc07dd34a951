"""`Processes`: the operating system's processes that one call of a tool, or an agent, has started, to end with it.

A thread cannot be stopped, but what it waits for can: Python announces each start of a process (an audit event) in the
thread and context that starts it, and Linux says which thread started which child. Where there is no such list, the
processes of an abandoned call run on until they end by themselves.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from contextvars import ContextVar, Token
from threading import get_native_id
from typing import Any, TypeVar

T = TypeVar("T")

_STARTS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty", "os.system"})
_current: ContextVar[Processes | None] = ContextVar("processes of the running tool", default=None)
_starting: dict[int, tuple[Processes, set[int]]] = {}
"""By thread: who announced a start that has not been looked after yet, and the thread's children before it."""
_heard = False


class Processes:
    """Work that is begun in `with processes:` belongs to them, and so does every process that it starts."""

    __slots__ = ("_found", "_over", "_threads", "_token")

    def __init__(self) -> None:
        self._found: dict[int, str] = {}
        self._threads: set[int] = set()
        self._over = False

    def __enter__(self) -> None:
        _hear_starts()
        self._token: Token[Processes | None] = _current.set(self)

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)

    async def of(self, work: Coroutine[Any, Any, T]) -> T:
        """`work`, to be run in a task of its own, whose processes these are."""
        with self:
            return await work

    def end(self) -> None:
        """Kill what was started, with all that came of it; nothing more can be started in this call's name."""
        self._over = True
        for thread in self._threads:
            _look_after(thread)
        for pid, born in self._found.items():
            if _born(pid) == born:  # else it has ended, and the number may be another's by now
                _kill(pid)
        self._found.clear()

    def announced(self, thread: int) -> None:
        """A process is about to be started. Raises RuntimeError once the call is over."""
        if self._over:
            raise RuntimeError("the rollout has ended or its time is over, no process can be started in its name")
        self._threads.add(thread)
        _starting[thread] = (self, _children(thread))

    def started(self, pids: Iterable[int]) -> None:
        """These are ours."""
        self._found.update((pid, _born(pid)) for pid in pids)


def _hear_starts() -> None:
    """Listen from the first call of a tool on: a hook can never be taken away again."""
    global _heard
    if not _heard:
        _heard = True
        if os.path.exists(f"/proc/self/task/{get_native_id()}/children"):  # noqa: PTH110 (pathlib is not loaded for this)
            sys.addaudithook(_hook)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _STARTS:
        thread = get_native_id()
        _look_after(thread)
        processes = _current.get()
        if processes is not None:
            processes.announced(thread)


def _look_after(thread: int) -> None:
    """Give what a thread has started since the last announcement to whoever announced it."""
    waiting = _starting.get(thread)
    if waiting is not None:
        processes, before = waiting
        new = _children(thread) - before
        if new:
            _starting.pop(thread, None)
            processes.started(new)


def _children(thread: int) -> set[int]:
    return _read_children(f"/proc/self/task/{thread}/children")


def _read_children(path: str) -> set[int]:
    try:
        with open(path) as file:  # noqa: PTH123
            return {int(pid) for pid in file.read().split()}
    except OSError:
        return set()


def _born(pid: int) -> str:
    """When a process was started; "" when it is no more."""
    try:
        with open(f"/proc/{pid}/stat") as file:  # noqa: PTH123
            return file.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _kill(pid: int) -> None:
    """Kill a process and its descendants. Each is stopped before it is asked for its children: it makes no new ones."""
    tree = [pid]
    for each in tree:
        with suppress(OSError):
            os.kill(each, signal.SIGSTOP)
            for thread in os.listdir(f"/proc/{each}/task"):  # noqa: PTH208
                tree.extend(_read_children(f"/proc/{each}/task/{thread}/children"))
    for each in tree:
        with suppress(OSError):
            os.kill(each, signal.SIGKILL)
