"""From whatever the third seed calls a tool to one of the engine's.

An object with `execute`, a `BaseAgenticTool`, a function, a class of any of these, or a tool that is ours already.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

from runner.agentic.tool import BaseAgenticTool, said
from runner.agentic.tool import ToolResult as Given
from runner.records.completion import ToolSpec
from runner.tools.callable import CallableTool
from runner.tools.signature import SignatureError, derive
from runner.tools.tool import Tool, ToolResult, ToolScope
from runner.workflows.loop.tool_schemas import spec_of

rewards: ContextVar[list[tuple[str, Any, float]] | None] = ContextVar("agentic_rewards", default=None)
"""Where tools leave their rewards: name, arguments (None: of its whole life), and the number."""

_ANYTHING = {"type": "object", "properties": {}}


def adapted(tools: Any, *, timeout: float | None = None) -> dict[str, Tool]:
    """The tools of a mapping by name, or of a list. Raises TypeError for what is none."""
    if isinstance(tools, Mapping):
        return {str(name): adapt(tool, str(name), timeout=timeout) for name, tool in tools.items()}
    found = [adapt(tool, None, timeout=timeout) for tool in tools]
    named = {tool.spec.name: tool for tool in found}
    if len(named) < len(found):
        raise TypeError(f"two tools have one name: {', '.join(tool.spec.name for tool in found)}")
    return named


def adapt(value: Any, name: str | None = None, *, timeout: float | None = None) -> Tool:
    """One tool, under the name it is given or has. `timeout` is in seconds. Raises TypeError."""
    if inspect.isclass(value):
        value = _made(value)
    if hasattr(value, "spec") and hasattr(value, "call"):
        tool: Tool = value
        return tool
    if isinstance(value, BaseAgenticTool):
        spec = spec_of(value.get_openai_tool_schema())
        return LivingTool(replace(spec, name=name or spec.name), value, timeout)
    function = getattr(value, "execute", None) or value
    if not callable(function):
        found = type(value).__name__
        raise TypeError(
            f"the tool {name!r} is of type {found}: give a function, or an object with `execute(**arguments)`"
        )
    return CallableTool(_spec(value, function, name), function, timeout=timeout)


def _made(kind: type[Any]) -> Any:
    try:
        return kind()
    except TypeError as error:
        raise TypeError(
            f"the tool {kind.__name__} cannot be made without arguments: {error}; give an instance"
        ) from None


def _spec(value: Any, function: Callable[..., Any], name: str | None) -> ToolSpec:
    """By its own schema, or else by the signature of what is called."""
    own = getattr(value, "get_openai_tool_schema", None)
    schema = own() if callable(own) else getattr(value, "tool_schema", None)
    if schema is not None:
        spec = spec_of(schema)
        return replace(spec, name=name or spec.name)
    derived = _derived(function, name or type(value).__name__)
    description = str(getattr(value, "description", "") or derived.description or inspect.getdoc(type(value)) or "")
    if value is function:
        description = derived.description
    named = name or getattr(value, "name", None) or derived.name
    parameters = getattr(value, "parameters", None)
    return ToolSpec(str(named), description, parameters if isinstance(parameters, Mapping) else derived.parameters)


def _derived(function: Callable[..., Any], name: str) -> ToolSpec:
    try:
        return derive(function)
    except SignatureError as error:
        kinds = [each.kind for each in inspect.signature(function).parameters.values()]
        if kinds == [inspect.Parameter.VAR_KEYWORD]:
            return ToolSpec(name, inspect.getdoc(function) or "", _ANYTHING)  # it takes whatever it is given
        raise TypeError(f"the tool {name!r} cannot be described to a model: {error}") from None


class LivingTool:
    """A `BaseAgenticTool` in the engine: its instance is made with a rollout's first call, released when it ends."""

    def __init__(self, spec: ToolSpec, tool: BaseAgenticTool, timeout: float | None = None) -> None:
        self._spec = spec
        self._tool = tool
        self._play = CallableTool(spec, self._execute, timeout=timeout)

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def call(self, arguments: dict[str, Any], scope: ToolScope) -> ToolResult:
        """Call it. What it raises is an answer; its reward is left in the scope."""
        return await self._play.call({"arguments": arguments, "scope": scope}, scope)

    async def _execute(self, arguments: Any, scope: Any) -> ToolResult:
        given = await self._tool.execute_tool(await self._instance(scope), dict(arguments))
        if not isinstance(given, Given):
            raise TypeError(f"execute_tool returned {type(given).__name__}, not a ToolResult")
        self._reward(arguments, given.reward_score)
        return ToolResult(said(given), "ok" if given.success else "error")

    async def _instance(self, scope: ToolScope) -> str:
        import asyncio

        key = f"agentic instance of {self._spec.name}"
        if key not in scope.state:
            # Calls of one turn run together, and all of them are of one life.
            making = scope.state[key] = asyncio.ensure_future(self._tool.create_instance())

            async def release() -> None:
                instance = await making
                try:
                    self._reward(None, await self._tool.calculate_reward(instance))
                finally:
                    await self._tool.release_instance(instance)

            scope.on_close(release)
        instance: str = await scope.state[key]
        return instance

    def _reward(self, arguments: Any, reward: float) -> None:
        left = rewards.get()
        if left is not None and reward:
            left.append((self._spec.name, arguments, float(reward)))
