"""What a reference of the file may name of Strands: an agent, what makes one, a tool. Imports Strands if it is there.

Nothing of Strands can be named before it is imported, so code that does not use it costs nothing here.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Any

from runner.workflows.typed import WorkflowMisfit
from runner.workflows.workflow import AgentWorkflow


def adapt_agent(made: Any, make: Callable[[], Any]) -> AgentWorkflow[Any] | None:
    """The workflow that plays the agents `make` makes; None if `made` (None: it is known to be one) is no agent."""
    if "strands" not in sys.modules:
        return None
    from strands import Agent

    if made is not None and not isinstance(made, Agent):
        return None
    from runner.strands.workflow import AgentFactoryWorkflow

    return AgentFactoryWorkflow(make)


def agent_maker(target: Any) -> Any:
    """`target`, and for a subclass of the `Agent` of Strands a function that makes one.

    Raises `WorkflowMisfit` for an agent that is made already.
    """
    if "strands" not in sys.modules:
        return target
    from strands import Agent

    if isinstance(target, Agent):
        raise WorkflowMisfit("it is an agent; name a function that makes one: each rollout needs its own")
    if not (inspect.isclass(target) and issubclass(target, Agent)):
        return target

    @functools.wraps(target, updated=())
    def make() -> Any:
        return target()

    del make.__wrapped__  # its signature is its own
    return make


def plain_tool(value: Any) -> tuple[Any, dict[str, Any] | None]:
    """The function under Strands' `@tool`, and the spec that `@tool` made of it; any other value, and None.

    A result in the form of Strands is made into what it says; one with `status = "error"` is raised as RuntimeError.
    """
    if "strands" not in sys.modules:
        return value, None
    from strands.tools.decorator import DecoratedFunctionTool

    if not isinstance(value, DecoratedFunctionTool):
        return value, None
    function, spec = inspect.unwrap(value), dict(value.tool_spec)
    given = _given(function, spec)
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def answer_later(*arguments: Any, **keywords: Any) -> Any:
            return _said(await function(*arguments, **keywords, **given(keywords)))

        return _seen(answer_later, function, spec), spec

    @functools.wraps(function)
    def answer(*arguments: Any, **keywords: Any) -> Any:
        return _said(function(*arguments, **keywords, **given(keywords)))

    return _seen(answer, function, spec), spec


def _given(function: Any, spec: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What Strands hands to a tool beside what the model wrote: `agent`, and with `context=True` a `ToolContext`."""
    names = _special(function, spec)
    if not names:
        return lambda keywords: {}
    from runner.strands.tool_context import context_of

    def given(keywords: dict[str, Any]) -> dict[str, Any]:
        context = context_of(str(spec["name"]), keywords)
        return {name: context.agent if name == "agent" else context for name in names}

    return given


def _special(function: Any, spec: dict[str, Any]) -> list[str]:
    known = spec["inputSchema"]["json"].get("properties", {})
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if each.name not in known and each.kind not in variadic]


def _seen(made: Any, function: Any, spec: dict[str, Any]) -> Any:
    """`made` with the parameters that a model may give."""
    special = _special(function, spec)
    signature = inspect.signature(function)
    kept = [each for each in signature.parameters.values() if each.name not in special]
    made.__signature__ = signature.replace(parameters=kept)
    return made


def manager_from(factory: Callable[[], Any]) -> Any:
    """The conversation manager that `factory` makes. Raises TypeError when it makes something else."""
    from strands.agent.conversation_manager import ConversationManager

    made = factory()
    if not isinstance(made, ConversationManager):
        raise TypeError(f"it gave {type(made).__name__}, not a ConversationManager of Strands")
    return made


def _said(result: Any) -> Any:
    if not (isinstance(result, dict) and isinstance(result.get("content"), list) and "status" in result):
        return result
    texts = [block["text"] if "text" in block else block["json"] for block in result["content"] if _is_said(block)]
    if result["status"] == "error":
        raise RuntimeError("\n".join(map(str, texts)))
    return texts[0] if len(texts) == 1 else "\n".join(map(str, texts))


def _is_said(block: Any) -> bool:
    return isinstance(block, dict) and ("text" in block or "json" in block)
