"""`ToolRegistry`: tools by name, and calls of them by hand. Agents need none: they are given their tools."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

from runner.agentic.adapted import adapt
from runner.agentic.tool import BaseAgenticTool, ToolCallInfo, ToolResult
from runner.records.completion import Caller, ToolSpec
from runner.records.message import ToolCall
from runner.tools.tool import ToolScope
from runner.tools.toolbox import Toolbox


class ToolRegistry:
    """Tools by name. Everything that is a tool elsewhere is one here: a class, an object, a function."""

    def __init__(self) -> None:
        self._tools: dict[str, Any] = {}

    def register_tool(self, tool: Any, config: Mapping[str, Any] | None = None, name: str | None = None) -> str:
        """Add a class, made with `config` where there is one, or a function; the name it goes by.

        Raises ValueError for a name that is taken, TypeError for what is no tool.
        """
        made: Any = tool
        if inspect.isclass(tool):
            kind: Any = tool
            made = kind() if config is None else kind(config)
        elif config is not None:
            raise TypeError("`config` is what a class is made with, and this is made already")
        return self.register_tool_instance(made, name)

    def register_tool_instance(self, tool: Any, name: str | None = None) -> str:
        """Add one that is made; the name it goes by. Raises as `register_tool` does."""
        named = name or adapt(tool).spec.name
        adapt(tool, named)
        if named in self._tools:
            raise ValueError(f"a tool {named!r} is registered already")
        self._tools[named] = tool
        return named

    def unregister_tool(self, name: str) -> bool:
        """Forget one; whether there was one."""
        return self._tools.pop(name, None) is not None

    def get_tool(self, name: str) -> Any:
        """The tool of that name, or None."""
        return self._tools.get(name)

    def get_tools(self) -> dict[str, Any]:
        """All of them by name, as `set_tools` takes them."""
        return dict(self._tools)

    def has_tool(self, name: str) -> bool:
        """Whether there is one of that name."""
        return name in self._tools

    def get_tool_names(self) -> list[str]:
        """The names, in the order of their registration."""
        return list(self._tools)

    def get_tool_schema(self, name: str) -> dict[str, Any]:
        """The schema of one as OpenAI has it. Raises KeyError."""
        return self._spec(name).wire()

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """All schemas, in the order of their registration."""
        return [self.get_tool_schema(name) for name in self._tools]

    def get_tool_info(self, name: str) -> dict[str, Any]:
        """Name, class, schema, and how many instances live. Raises KeyError."""
        tool = self._known(name)
        kind = type(tool)
        return {
            "name": name,
            "class": f"{kind.__module__}.{kind.__qualname__}",
            "schema": self.get_tool_schema(name),
            "active_instances": len(tool.instances) if isinstance(tool, BaseAgenticTool) else 0,
        }

    async def create_tool_instance(self, name: str, instance_id: str | None = None, **more: Any) -> str:
        """Begin a life of a tool that has such; its id. Raises KeyError, and TypeError for a tool that has none."""
        return await self._living(name).create_instance(instance_id, **more)

    async def release_tool_instance(self, name: str, instance_id: str) -> None:
        """End it."""
        await self._living(name).release_instance(instance_id)

    async def release_all_instances(self) -> None:
        """End all."""
        living = [tool for tool in self._tools.values() if isinstance(tool, BaseAgenticTool)]
        await asyncio.gather(*(tool.release_instance(each) for tool in living for each in list(tool.instances)))

    async def calculate_tool_reward(self, name: str, instance_id: str) -> float:
        """The reward of a life."""
        return await self._living(name).calculate_reward(instance_id)

    async def execute_tool(
        self, name: str, parameters: Mapping[str, Any], instance_id: str | None = None
    ) -> ToolResult:
        """Call a tool. A name that is none, arguments that do not fit, and a tool that fails are results as well."""
        import json

        tool = self._tools.get(name)
        if isinstance(tool, BaseAgenticTool) and tool.validate_parameters(parameters):
            return await _lived(tool, dict(parameters), instance_id)
        box = Toolbox({each: adapt(made, each) for each, made in self._tools.items()})
        scope = ToolScope(Caller("tool-registry"))
        (answer,) = await box.run([ToolCall("", name, json.dumps(dict(parameters)))], scope)
        for closer in reversed(scope.closers):
            await closer()
        fine, content = answer.result.status == "ok", answer.result.content
        from runner.agentic.steps import value_of

        return ToolResult(fine, value_of(content) if fine else None, None if fine else content)

    async def execute_tool_call(self, call: ToolCallInfo) -> ToolResult:
        """The same of a `ToolCallInfo`."""
        return await self.execute_tool(call.tool_name, call.parameters, call.instance_id)

    def clear_registry(self) -> None:
        """Forget all tools."""
        self._tools.clear()

    def _known(self, name: str) -> Any:
        if name not in self._tools:
            raise KeyError(f"there is no tool {name!r}; there are: {', '.join(self._tools) or 'none'}")
        return self._tools[name]

    def _spec(self, name: str) -> ToolSpec:
        return adapt(self._known(name), name).spec

    def _living(self, name: str) -> BaseAgenticTool:
        tool = self._known(name)
        if not isinstance(tool, BaseAgenticTool):
            raise TypeError(f"the tool {name!r} is no BaseAgenticTool: it has no instances")
        return tool


async def _lived(tool: BaseAgenticTool, parameters: dict[str, Any], instance_id: str | None) -> ToolResult:
    """A call in a life that is there, or in one of its own."""
    life = await tool.create_instance() if instance_id is None else instance_id
    try:
        return await tool.execute_tool(life, parameters)
    except Exception as error:
        return ToolResult(False, None, f"{type(error).__name__}: {error}")
    finally:
        if instance_id is None:
            await tool.release_instance(life)


_registry = ToolRegistry()


def get_tool_registry() -> ToolRegistry:
    """The process's own registry."""
    return _registry


def register_tool(tool: Any, config: Mapping[str, Any] | None = None, name: str | None = None) -> str:
    """Add a tool to the process's own registry. Raises as `ToolRegistry.register_tool` does."""
    return _registry.register_tool(tool, config, name)


def register_tool_instance(tool: Any, name: str | None = None) -> str:
    """The same of one that is made."""
    return _registry.register_tool_instance(tool, name)
