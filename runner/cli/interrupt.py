"""Ctrl-C: the first asks the run to stop, the second ends the process at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from runner.cli.exit import Exit


class Stoppable(Protocol):
    """Something that can be asked to stop. False when it was asked before."""

    def interrupt(self) -> bool: ...


@contextmanager
def interruptible(control: Stoppable, view: Any) -> Iterator[None]:
    """While the block runs, SIGINT and SIGTERM stop `control`; a second one ends the process with 130.

    What is on disk is whole at every moment, so ending at once loses only what was still running.
    """
    loop = asyncio.get_running_loop()

    def interrupted() -> None:
        if control.interrupt():
            view.told("what runs may finish for a few seconds; Ctrl-C again ends at once")
            return
        close = getattr(view, "close", None)
        if close is not None:
            close()
        sys.stderr.write("interrupted\n")
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(Exit.INTERRUPTED))

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted)
    try:
        yield
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
