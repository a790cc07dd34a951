"""The `ToolContext` of a tool of the file: of the agent that calls it, or, where no agent of Strands does, of none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

from strands import ToolContext

_calling: ContextVar[tuple[Any, dict[str, Any]] | None] = ContextVar("calling", default=None)
"""What the agent calls the tool with, and the state of its invocation."""


class _NoAgent:
    """Stands where an agent would."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise RuntimeError(f"`agent.{name}`: no agent of Strands called this tool; `agent = 'strands'` would be one")


@contextmanager
def calling(tool_use: Any, invocation_state: dict[str, Any]) -> Iterator[None]:
    """Inside the block, tools of the file are called by an agent of Strands."""
    token = _calling.set((tool_use, invocation_state))
    try:
        yield
    finally:
        _calling.reset(token)


def context_of(name: str, arguments: dict[str, Any]) -> ToolContext[Any]:
    """What a tool that is called now, with these arguments, may know of the call."""
    found = _calling.get()
    if found is None:
        return ToolContext(tool_use={"toolUseId": "", "name": name, "input": arguments}, agent=_NoAgent(),
                           invocation_state={})  # fmt: skip
    tool_use, state = found
    return ToolContext(tool_use=tool_use, agent=state.get("agent"), invocation_state=state)
