"""`GuardedTool`: a tool that an agent of Strands runs by itself, with a time limit, and held to one answer.

Strands waits for ever for a tool that hangs, and leaves a call without an answer when a tool raises `CancelledError`:
the model would then be asked again and again. Here both are answers to the model, as they are for a tool of the file.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

from strands.types.tools import AgentTool

_OVER: Any = object()


class GuardedTool(AgentTool):
    """`tool`, and it is `tool` in everything but how long it may run: `seconds`, or for ever. `late` hears of one.

    A tool that is no coroutine runs on in its thread when its time is over; nobody waits for it.
    """

    def __init__(self, tool: AgentTool, seconds: float | None, late: Callable[[str], None]) -> None:
        super().__init__()
        self._tool = tool
        self._seconds = seconds
        self._late = late

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)

    @property
    def tool_name(self) -> str:
        return self._tool.tool_name

    @property
    def tool_spec(self) -> Any:
        return self._tool.tool_spec

    @property
    def tool_type(self) -> str:
        return self._tool.tool_type

    @property
    def supports_hot_reload(self) -> bool:
        return self._tool.supports_hot_reload

    @property
    def is_dynamic(self) -> bool:
        return self._tool.is_dynamic

    def get_display_properties(self) -> dict[str, str]:
        return self._tool.get_display_properties()

    async def stream(self, tool_use: Any, invocation_state: dict[str, Any], **more: Any) -> AsyncGenerator[Any, None]:
        """The tool's events, the last its result."""
        loop = asyncio.get_running_loop()
        end = None if self._seconds is None else loop.time() + self._seconds
        events = aiter(self._tool.stream(tool_use, invocation_state, **more))
        name = str(tool_use.get("toolUseId"))
        try:
            while True:
                scope = asyncio.timeout_at(end)
                try:
                    # No `yield` in here: the time of whoever listens is not the tool's, nor its cancellation.
                    async with scope:
                        event = await anext(events, _OVER)
                except TimeoutError:
                    if not scope.expired():
                        raise
                    yield self._overdue(name)
                    return
                if end is not None and (scope.expired() or loop.time() > end):  # it blocked, or swallowed the end
                    yield self._overdue(name)
                    return
                if event is _OVER:
                    return
                yield event
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            yield _error(name, "CancelledError: the tool cancelled itself")
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

    def _overdue(self, name: str) -> dict[str, Any]:
        self._late(name)
        return _error(name, f"`{self.tool_name}` did not answer within {self._seconds:g} s.")


def _error(name: str, text: str) -> dict[str, Any]:
    return {"toolUseId": name, "status": "error", "content": [{"text": text}]}
