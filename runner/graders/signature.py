"""Which of the three signatures a grading function has, and how to call it.

Told by parameter names, as the SDK always did: `solution_str`, or `messages`, or one context.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Literal, TypeAlias

from runner.graders.grader import GraderContext, GraderMisfit
from runner.records.quick import quick

Kind: TypeAlias = Literal["solution", "messages", "ctx"]

SIGNATURES = "(solution_str, ground_truth, extra_info), (messages, ground_truth, metadata) or (ctx)"
_GIVEN: Mapping[Kind, frozenset[str]] = {
    "solution": frozenset({"solution_str", "ground_truth", "extra_info", "data_source"}),
    "messages": frozenset({"messages", "ground_truth", "metadata"}),
}
_CONTEXT_NAMES = ("ctx", "context")


@quick
class Call:
    """A function, its kind, which of the given values it takes, and the keyword arguments of the file."""

    kind: Kind
    function: Callable[..., Any]
    is_async: bool
    positional: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, ctx: GraderContext) -> Any:
        """Call the function for `ctx`. The result is awaitable when `is_async`."""
        if self.kind == "ctx":
            return self.function(ctx, **self.config)
        given = _values(self.kind, ctx)
        return self.function(
            *(given[name] for name in self.positional), **{name: given[name] for name in self.named}, **self.config
        )


def _values(kind: Kind, ctx: GraderContext) -> dict[str, Any]:
    row = dict(ctx.row)
    if kind == "messages":
        return {"messages": ctx.messages, "ground_truth": ctx.label, "metadata": row}
    known = {"solution_str": ctx.output, "ground_truth": ctx.label}
    return {**known, "extra_info": row, "data_source": row.get("data_source")}


def call_of(function: Any, config: Mapping[str, Any], name: str) -> Call:
    """How to call `function`. Raises `GraderMisfit` when it has none of the signatures, or `config` does not fit it."""
    if not callable(function):
        raise GraderMisfit(f"{name} is a {type(function).__name__}: a grader is a function or a Grader class")
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (ValueError, TypeError) as error:
        raise GraderMisfit(f"{name} has no signature to read; wrap it in a function with {SIGNATURES}") from error
    kind = _kind(parameters, config, name)
    given = {parameters[0].name} if kind == "ctx" else _GIVEN[kind]
    _check(parameters, given, config, name)
    taken = [each for each in parameters if each.name in given and kind != "ctx"]
    positional = tuple(each.name for each in taken if each.kind is inspect.Parameter.POSITIONAL_ONLY)
    named = [each.name for each in taken if each.name not in positional]
    if kind != "ctx" and any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters):
        # `**kwargs` stands for what the signature left out, as it did in the SDK.
        named += sorted(_GIVEN[kind] - {"data_source"} - {each.name for each in taken})
    return Call(kind, function, _is_async(function), positional, tuple(named), dict(config))


def _kind(parameters: list[inspect.Parameter], config: Mapping[str, Any], name: str) -> Kind:
    names = {each.name for each in parameters}
    if "solution_str" in names and "messages" in names:
        raise GraderMisfit(f"{name} takes both solution_str and messages; a grader takes {SIGNATURES}")
    if "solution_str" in names:
        return "solution"
    if "messages" in names:
        return "messages"
    if parameters and _takes_context(parameters[0]):
        return "ctx"
    shown = ", ".join(str(each.replace(annotation=inspect.Parameter.empty)) for each in parameters)
    raise GraderMisfit(f"{name}({shown}) has none of the signatures of a grader: {SIGNATURES}")


def _takes_context(first: inspect.Parameter) -> bool:
    hint = first.annotation
    named = hint if isinstance(hint, str) else getattr(hint, "__name__", "")
    positional = first.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return positional and (first.name in _CONTEXT_NAMES or named.rpartition(".")[2].strip("\"'") == "GraderContext")


def _check(
    parameters: list[inspect.Parameter], given: frozenset[str] | set[str], config: Mapping[str, Any], name: str
) -> None:
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    own = {each.name: each for each in parameters if each.kind not in variable and each.name not in given}
    open_ended = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters)
    for key in config:
        if key in given:
            raise GraderMisfit(f"config sets {key}, which {name} is given by the rollout", key=key)
        if key not in own and not open_ended:
            takes = ", ".join(own) or "no settings"
            message = f"config sets {key}, which {name} does not take; it takes {takes}"
            raise GraderMisfit(message, key=key, known=tuple(own))
    for each in own.values():
        if each.default is inspect.Parameter.empty and each.name not in config:
            raise GraderMisfit(
                f"{name} requires {each.name}, which a grader is not given; a grader takes {SIGNATURES}, "
                "and its own settings come from config",
                key=each.name,
            )
        if each.kind is inspect.Parameter.POSITIONAL_ONLY and each.name in config:
            raise GraderMisfit(f"{name} takes {each.name} by position only, and config goes by name")


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
