"""Reading tool calls, and writing what came of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from runner.workflows.loop.errors import ToolArgumentError

Executor = Callable[[Any], Awaitable[dict[str, Any]]]


def create_tool_result(tool_call_id: str, content: str) -> dict[str, Any]:
    """The message that answers a tool call."""
    return {"role": "tool", "content": content, "tool_call_id": tool_call_id}


def create_tool_error_result(tool_call_id: str, error_message: str) -> dict[str, Any]:
    """The message that tells the model what went wrong with its call."""
    return create_tool_result(tool_call_id, f"Error: {error_message}")


def serialize_tool_result(result: Any) -> str:
    """A result as text: booleans as JSON writes them, numbers and texts as they are, anything else as JSON.

    Raises TypeError for what JSON has no form for: bytes, sets, decimals.
    """
    if isinstance(result, bool):
        return "true" if result else "false"
    if isinstance(result, int | float):
        return str(result)
    return result if isinstance(result, str) else json.dumps(result)


def parse_tool_arguments(arguments: Any) -> dict[str, Any]:
    """The arguments of a call, an object or its JSON text, as an object. Raises `ToolArgumentError`."""
    if isinstance(arguments, dict):
        return arguments
    if not isinstance(arguments, str):
        raise ToolArgumentError(f"Tool arguments must be a JSON object, found {type(arguments).__name__}")
    try:
        parsed = json.loads(arguments)
    except (ValueError, RecursionError) as error:
        raise ToolArgumentError(f"Tool arguments are not valid JSON: {error}") from error
    if not isinstance(parsed, dict):
        raise ToolArgumentError(f"Tool arguments must be a JSON object, found {type(parsed).__name__}")
    return parsed


def get_tool_call_info(tool_call: Mapping[str, Any]) -> tuple[str, str, dict[str, Any]]:
    """`(id, name, arguments)` of a tool call; an id that is missing is "unknown".

    Raises `ToolArgumentError`, which knows id and name as far as they are there, for arguments that are no object and
    for a call that is none.
    """
    if not isinstance(tool_call, Mapping):
        raise ToolArgumentError(f"A tool call is an object, found {type(tool_call).__name__}", "unknown")
    call_id, function = tool_call.get("id", "unknown"), tool_call.get("function", {})
    if not isinstance(function, Mapping):
        raise ToolArgumentError(f"The function of a tool call is an object, found {type(function).__name__}", call_id)
    name = function.get("name", "")
    try:
        return call_id, name, parse_tool_arguments(function.get("arguments", {}))
    except ToolArgumentError as error:
        raise ToolArgumentError(str(error), call_id, name) from error.__cause__


async def execute_tool_calls(
    tool_calls: Sequence[Any] | None, executor: Executor, *, isolate: bool = False
) -> list[dict[str, Any]]:
    """What `executor` makes of each call, all at once, in the order of the calls.

    An exception of one call is raised; with `isolate` it becomes that call's error message, and the others stand.
    """
    if not tool_calls:
        return []
    if isolate:
        return list(await asyncio.gather(*(_isolated(call, executor) for call in tool_calls)))
    return list(await asyncio.gather(*(executor(call) for call in tool_calls)))


async def _isolated(tool_call: Any, executor: Executor) -> dict[str, Any]:
    try:
        return await executor(tool_call)
    except Exception as error:
        call_id = tool_call.get("id", "unknown") if isinstance(tool_call, Mapping) else "unknown"
        return create_tool_error_result(call_id, f"{type(error).__name__}: {error}")
