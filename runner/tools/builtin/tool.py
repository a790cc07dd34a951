"""`BuiltinTool`: one of our own tools in a plan, shared by all rollouts; what a rollout has of it is in its scope."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from runner.records.completion import ToolSpec
from runner.sandboxes.sandbox import Sandbox
from runner.tools.builtin.bash import Bash
from runner.tools.builtin.file_editor import FileEditor, History
from runner.tools.builtin.python import PythonTool
from runner.tools.builtin.search import Search
from runner.tools.builtin.session import Session
from runner.tools.output import cap, sendable
from runner.tools.slots import Slots
from runner.tools.tool import ToolResult, ToolScope

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

Act: TypeAlias = Callable[[Mapping[str, Any], ToolScope], Awaitable[ToolResult]]
"""One call. Raises `SandboxError`, which ends the rollout, and nothing else."""


class BuiltinTool:
    """Calls `act`. `timeout` is in seconds, None for one that keeps its own; `limit` is calls at once, in all."""

    def __init__(self, spec: ToolSpec, act: Act, *, timeout: float | None, limit: int | None, max_output: int) -> None:
        self._spec = spec
        self._act = act
        self._timeout = timeout
        self._limit = limit
        self._max_output = max_output
        self._slots = Slots(limit, spec.name)
        self._loop: AbstractEventLoop | None = None

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def call(self, arguments: dict[str, Any], scope: ToolScope) -> ToolResult:
        """Call it, within its time. Raises `SandboxError`."""
        import asyncio

        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # a plan may outlive an event loop; what waits on a slot cannot
            self._loop, self._slots = loop, Slots(self._limit, self._spec.name)
        await self._slots.take()
        try:
            async with asyncio.timeout(self._timeout) as deadline:
                result = await self._act(arguments, scope)
        except TimeoutError:
            if not deadline.expired():
                raise
            return ToolResult(f"`{self._spec.name}` did not answer within {self._timeout:g} s.", "timeout")
        finally:
            self._slots.give()
        content, cut = cap(result.content, self._max_output)
        return replace(result, content=sendable(content), truncated=result.truncated or cut)


def alone(part: Callable[..., Awaitable[ToolResult]]) -> Act:
    """A tool that needs nothing but its arguments."""

    async def act(arguments: Mapping[str, Any], scope: ToolScope) -> ToolResult:
        return await part(**arguments)

    return act


def with_session(name: str, sandbox: str, part: Bash | PythonTool) -> Act:
    """A tool with a program of the rollout's own, which ends with the rollout."""

    async def act(arguments: Mapping[str, Any], scope: ToolScope) -> ToolResult:
        place = await scope.sandboxes[sandbox].get()
        session = scope.state.get(name)
        if not isinstance(session, Session):
            session = scope.state[name] = part.open(place)
            scope.on_close(session.close)
        return await part.use(session, arguments)

    return act


def with_history(name: str, sandbox: str, part: FileEditor) -> Act:
    """The editor, which remembers what it changed in this rollout."""

    async def act(arguments: Mapping[str, Any], scope: ToolScope) -> ToolResult:
        place = await scope.sandboxes[sandbox].get()
        return await part.use(place, scope.state.setdefault(name, History()), arguments)

    return act


def with_search(name: str, sandbox: str, part: Search) -> Act:
    """The search, which asks once whether there is something faster."""

    async def quick(place: Sandbox, scope: ToolScope) -> bool:
        if name not in scope.state:
            scope.state[name] = await part.quick(place)
        return bool(scope.state[name])

    async def act(arguments: Mapping[str, Any], scope: ToolScope) -> ToolResult:
        place = await scope.sandboxes[sandbox].get()
        return await part.use(place, await quick(place, scope), arguments)

    return act
