"""Ctrl-C: the first asks the work to stop, the second ends the process at once.

What is on disk is whole at every moment, so ending at once loses only what was still running.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from runner.cli.exit import Exit

if TYPE_CHECKING:
    import asyncio


class Stoppable(Protocol):
    """Something that can be asked to stop. False when it was asked before."""

    def interrupt(self) -> bool: ...


class Pressed:
    """SIGINT's handler from the first moment of a command: raises KeyboardInterrupt, and knows that it did.

    Code that is not ours may make another error of it: whoever finds one asks here whether Ctrl-C was behind it. And
    what cannot raise at all (a callback of a C library, a finalizer) would forget it: then the process ends.
    """

    def __init__(self) -> None:
        self.once = False

    def listen(self) -> None:
        """Take SIGINT over, unless it is ignored, as under `nohup`."""
        if _is_free():
            signal.signal(signal.SIGINT, self)
            sys.unraisablehook = _never_forgotten

    def __call__(self, number: int, frame: Any) -> NoReturn:
        self.once = True
        raise KeyboardInterrupt


pressed = Pressed()


@contextmanager
def interruptible(control: Stoppable, view: Any) -> Iterator[None]:
    """While the block runs, SIGINT and SIGTERM stop `control`; a second one ends the process with 130."""
    import asyncio

    loop = asyncio.get_running_loop()

    def interrupted() -> None:
        if control.interrupt():
            view.told("what runs may finish for a few seconds; Ctrl-C again ends at once")
            return
        close = getattr(view, "close", None)
        if close is not None:
            close()
        end_interrupted()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


@contextmanager
def interrupted_by_cancelling(task: asyncio.Task[Any]) -> Iterator[None]:
    """While the block runs `task`, SIGINT cancels it and is raised when it has ended; a second ends the process.

    Raised wherever the interpreter happens to be, it would now and then hit the event loop between two steps of its
    own: a task that was to go on is then forgotten, and who waits for it never ends.
    """
    if not _is_free():
        yield
        return
    from asyncio import CancelledError

    cancelling = _Cancelling(task)
    before = signal.signal(signal.SIGINT, cancelling)
    try:
        yield
    except CancelledError:
        if cancelling.once:
            raise KeyboardInterrupt from None
        raise
    finally:
        if signal.getsignal(signal.SIGINT) is cancelling:
            signal.signal(signal.SIGINT, before)


class _Cancelling:
    def __init__(self, task: asyncio.Task[Any]) -> None:
        self._task = task
        self.once = False

    def __call__(self, number: int, frame: Any) -> None:
        if self.once:
            end_interrupted()
        self.once = True
        if self._task.done():
            raise KeyboardInterrupt
        self._task.cancel()
        self._task.get_loop().call_soon_threadsafe(lambda: None)  # a loop that sleeps wakes up


@contextmanager
def raising_interrupts() -> Iterator[None]:
    """While the block runs, SIGINT is raised at once: for what waits for a person and holds up the loop on purpose.

    One that came before and has not been heard yet is raised, too.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if isinstance(before, _Cancelling) and before.once:
            raise KeyboardInterrupt
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_free() -> bool:
    """Whether SIGINT does what it does by itself, and may be given to somebody here."""
    if threading.current_thread() is not threading.main_thread():
        return False
    handler = signal.getsignal(signal.SIGINT)
    return handler is signal.default_int_handler or handler is pressed


def _never_forgotten(unraisable: sys.UnraisableHookArgs) -> None:
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        end_interrupted()
    sys.__unraisablehook__(unraisable)


def end_interrupted() -> NoReturn:
    """End the process with 130 and one word, whatever still runs in it."""
    for stream in (sys.__stdout__, sys.stdout, sys.stderr):
        with suppress(OSError, RuntimeError):  # the signal may have come in the middle of a write
            if stream is not None:
                stream.flush()
    with suppress(OSError):
        os.write(2, b"interrupted\n")
    os._exit(int(Exit.INTERRUPTED))
