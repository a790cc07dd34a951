"""`validate_agent_loop`: everything that is wrong with an agent loop, found before a rollout is paid for."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runner.workflows.loop.errors import AgentLoopValidationError
from runner.workflows.loop.request import LOCAL_SERVER, RolloutRequest
from runner.workflows.loop.tool_schemas import plain_tool


@dataclass(frozen=True)
class ValidationError:
    """One thing that is wrong: a stable `code`, a sentence, and where."""

    code: str
    message: str
    field: str | None = None
    details: Mapping[str, Any] | None = None


@dataclass
class ValidationResult:
    """What was found. `errors` stop the loop, `warnings` do not."""

    valid: bool = True
    errors: list[ValidationError] = field(default_factory=list)
    warnings: list[ValidationError] = field(default_factory=list)
    agent_name: str | None = None
    tool_count: int = 0

    def raise_if_invalid(self) -> None:
        """Raise `AgentLoopValidationError` if there is an error."""
        if not self.valid:
            raise AgentLoopValidationError(self.errors)

    def _add(self, code: str, message: str, at: str | None = None, **details: Any) -> None:
        self.errors.append(ValidationError(code, message, at, details or None))
        self.valid = False

    def _warn(self, code: str, message: str, at: str | None = None) -> None:
        self.warnings.append(ValidationError(code, message, at))


def validate_agent_loop(agent_loop: Any, *, request: RolloutRequest | None = None) -> ValidationResult:
    """Look at name, tools and `run` of an agent loop. `request` is what `get_tools` is asked with."""
    result = ValidationResult()
    _check_name(agent_loop, result)
    _check_tools(agent_loop, request or _probe(), result)
    _check_run(agent_loop, result)
    return result


def _probe() -> RolloutRequest:
    return RolloutRequest(
        rollout_id="validation-test-rollout",
        server_url=LOCAL_SERVER,
        messages=[{"role": "user", "content": "validation"}],
        completion_params={},
        metadata={"_validation": True},
    )


def _check_name(loop: Any, result: ValidationResult) -> None:
    name = getattr(loop, "name", None)
    if name is None:
        result._add("MISSING_NAME", "the agent loop has no `name`", "name")
    elif not isinstance(name, str):
        result._add("INVALID_NAME_TYPE", f"`name` must be a text, found {type(name).__name__}", "name")
    elif not name.strip():
        result._add("EMPTY_NAME", "`name` is empty", "name")
    else:
        result.agent_name = name


def _check_tools(loop: Any, request: RolloutRequest, result: ValidationResult) -> None:
    try:
        tools = loop.get_tools(request)
    except Exception as error:
        kind = type(error).__name__
        result._add("GET_TOOLS_EXCEPTION", f"`get_tools` raised {kind}: {error}", "get_tools", exception=kind)
        return
    if tools is None:
        result._add(
            "GET_TOOLS_RETURNS_NONE", "`get_tools` returned None; return a list, `[]` for no tools", "get_tools"
        )
    elif not isinstance(tools, list | tuple):
        found = type(tools).__name__
        if inspect.iscoroutine(tools):
            tools.close()
            found = "a coroutine: take `async` off its `def`"
        result._add("GET_TOOLS_INVALID_TYPE", f"`get_tools` must return a list, found {found}", "get_tools")
    else:
        result.tool_count = len(tools)
        for index, tool in enumerate(tools):
            _check_tool(tool, f"tools[{index}]", result)


def _check_tool(tool: Any, at: str, result: ValidationResult) -> None:
    try:
        plain = plain_tool(tool)
    except TypeError as error:
        result._add("INVALID_TOOL_TYPE", f"{at}: {error}", at)
        return
    if "type" not in plain:
        result._add("MISSING_TOOL_TYPE", f'{at} has no `type`; write `"type": "function"`', f"{at}.type")
    elif plain["type"] != "function":
        result._warn("UNKNOWN_TOOL_TYPE", f"{at} has the type {plain['type']!r}, not 'function'", f"{at}.type")
    if "function" not in plain:
        result._add("MISSING_FUNCTION", f"{at} has no `function`", f"{at}.function")
    elif not isinstance(plain["function"], Mapping):
        found = type(plain["function"]).__name__
        result._add("INVALID_FUNCTION_TYPE", f"`function` of {at} must be an object, found {found}", f"{at}.function")
    else:
        _check_function(plain["function"], f"{at}.function", result)


def _check_function(function: Mapping[str, Any], at: str, result: ValidationResult) -> None:
    name = function.get("name")
    if "name" not in function:
        result._add("MISSING_FUNCTION_NAME", f"{at} has no `name`", f"{at}.name")
    elif not isinstance(name, str) or not name.strip():
        result._add("INVALID_FUNCTION_NAME", f"`name` of {at} must be a text, found {name!r:.60}", f"{at}.name")
    if not function.get("description"):
        result._warn("MISSING_FUNCTION_DESCRIPTION", f"{at} has no `description` for the model", f"{at}.description")
    parameters = function.get("parameters")
    if parameters is None:
        return
    if not isinstance(parameters, Mapping):
        found = type(parameters).__name__
        where = f"{at}.parameters"
        result._add("INVALID_PARAMETERS_TYPE", f"`parameters` of {at} must be an object, found {found}", where)
    elif parameters.get("type") != "object":
        found = repr(parameters.get("type"))
        result._warn(
            "PARAMETERS_TYPE_NOT_OBJECT", f"the type of {at}.parameters is {found}, not 'object'", f"{at}.parameters"
        )


def _check_run(loop: Any, result: ValidationResult) -> None:
    run = getattr(loop, "run", None)
    if run is None:
        result._add("MISSING_RUN_METHOD", "the agent loop has no `run`", "run")
    elif not callable(run):
        result._add("RUN_NOT_CALLABLE", f"`run` is a {type(run).__name__}, not a method", "run")
    elif not inspect.iscoroutinefunction(run):
        result._add("RUN_NOT_ASYNC", "`run` must be `async def`; put `async` before its `def`", "run")
