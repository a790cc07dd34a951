"""`run_async`: `asyncio.run` that does not wait for code which refuses to be cancelled.

A user's tool may swallow its cancellation and go on; its rollout ended long ago, and the process must end, too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from runner.cli.interrupt import interrupted_by_cancelling

T = TypeVar("T")

_PATIENCE = 1.0
"""Seconds that tasks left behind get to clean up."""


def run_async(
    main: Coroutine[Any, Any, T], new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
) -> T:
    """The result of `main`, on an event loop of its own. Raises what it raises.

    Ctrl-C cancels `main`, which may clean up for as long as it needs, and is raised when it has ended; a second one
    ends the process.
    """
    loop = new_loop()
    asyncio.set_event_loop(loop)
    task = loop.create_task(main)
    with interrupted_by_cancelling(task):
        try:
            return loop.run_until_complete(task)
        finally:
            try:
                _clear(loop)
            finally:
                asyncio.set_event_loop(None)
                loop.close()


def _clear(loop: asyncio.AbstractEventLoop) -> None:
    left = asyncio.all_tasks(loop)
    for task in left:
        task.cancel()
    if left:
        loop.run_until_complete(asyncio.wait(left, timeout=_PATIENCE))
    loop.run_until_complete(loop.shutdown_asyncgens())
    # What is left now would be reported as "destroyed but pending" when the interpreter ends: nobody's concern.
    loop.set_exception_handler(lambda *_: None)
