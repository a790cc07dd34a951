"""Which type a user's workflow wants its config to have, read from the generic parameter or a hint."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable
from typing import Any

from runner.workflows.workflow import AgentWorkflow, AgentWorkflowConfig, AgentWorkflowContext


class WorkflowMisfit(Exception):
    """What the reference names cannot drive a rollout. `message` says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


def config_type_of(workflow: type[AgentWorkflow[Any]]) -> Any:
    """`X` of `AgentWorkflow[X]` among the bases, else the hint of `__init__`'s first parameter, else the default.

    Raises `WorkflowMisfit` for a name in quotes that its module does not have.
    """
    found = _parameter_of_base(workflow, {})
    if _usable(found):
        return _resolved(found, workflow)
    if workflow.__init__ is AgentWorkflow.__init__:
        return AgentWorkflowConfig
    return _first_hint(workflow.__init__, skip=1) or AgentWorkflowConfig


def config_type_of_parameter(function: Callable[..., Any], *, context: bool) -> Any:
    """`X` of a function's `ctx: AgentWorkflowContext[X]` (`context=True`), or the hint of a factory's `config`."""
    hint = _first_hint(function, skip=0)
    if not context:
        return hint or AgentWorkflowConfig
    if typing.get_origin(hint) is not AgentWorkflowContext:
        return AgentWorkflowConfig
    (found,) = typing.get_args(hint)
    return found if _usable(found) else AgentWorkflowConfig


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether the first parameter of `function` is a rollout's context, by its name or its hint: it is a `run`."""
    try:
        names = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return False
    hint = _first_hint(function, skip=0)
    return names[:1] in (["ctx"], ["context"]) or AgentWorkflowContext in (hint, typing.get_origin(hint))


def _parameter_of_base(workflow: type[Any], bound: dict[Any, Any]) -> Any:
    """Walk up the generic bases, carrying what each type variable stands for."""
    for generic in getattr(workflow, "__orig_bases__", workflow.__bases__):
        origin = typing.get_origin(generic) or generic
        if not (inspect.isclass(origin) and issubclass(origin, AgentWorkflow)):
            continue
        arguments = [
            bound.get(each, each) if isinstance(each, typing.TypeVar) else each for each in typing.get_args(generic)
        ]
        if origin is AgentWorkflow:
            return arguments[0] if arguments else None
        return _parameter_of_base(origin, dict(zip(getattr(origin, "__parameters__", ()), arguments, strict=False)))
    return None


def _usable(hint: Any) -> bool:
    return hint is not None and hint is not Any and not isinstance(hint, typing.TypeVar)


def _resolved(hint: Any, workflow: type[Any]) -> Any:
    if not isinstance(hint, (str, typing.ForwardRef)):
        return hint
    module = inspect.getmodule(workflow)
    name = hint if isinstance(hint, str) else hint.__forward_arg__
    if not hasattr(module, name):
        raise WorkflowMisfit(f"the config type `{name}` of `{workflow.__name__}` is not a name of its module")
    return getattr(module, name)


def _first_hint(function: Any, *, skip: int) -> Any:
    """The hint of the first parameter without its `| None`; None when there is none that can be used."""
    try:
        names = list(inspect.signature(function).parameters)[skip:]
        hint = typing.get_type_hints(function).get(names[0]) if names else None
    except (NameError, TypeError, ValueError):
        return None
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        rest = [each for each in typing.get_args(hint) if each is not type(None)]
        hint = rest[0] if len(rest) == 1 else hint
    return hint if _usable(hint) else None
