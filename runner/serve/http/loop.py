"""`loop_factory`: the event loop of a worker. uvloop where it is installed: it writes head and body of an answer at
once (`benchmarks/servers.py`).

uvloop starts processes without the audit event of CPython's own loop, by which the processes of a tool are known and
ended with its call (`tools/processes.py`): here it raises it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """What makes a new loop."""
    try:
        import uvloop
    except ImportError:  # not made for Windows
        return asyncio.new_event_loop

    class Loop(uvloop.Loop):
        """uvloop's, and it says when it starts a process."""

        async def subprocess_exec(  # type: ignore[override]
            self, protocol: Any, *arguments: Any, **more: Any
        ) -> Any:
            sys.audit("subprocess.Popen", arguments[0], arguments, more.get("cwd"), more.get("env"))
            return await super().subprocess_exec(protocol, *arguments, **more)

        async def subprocess_shell(self, protocol: Any, command: Any, **more: Any) -> Any:  # type: ignore[override]
            sys.audit("subprocess.Popen", command, (command,), more.get("cwd"), more.get("env"))
            return await super().subprocess_shell(protocol, command, **more)

    return Loop
