"""The parameters of a callable as a tool call sees them: by keyword, with hints that can be used.

Everything that Python calls a callable is read here: functions, bound methods, partials, objects with `__call__`,
decorated functions. Hints are resolved one by one, so that one which cannot be (a name imported for type checkers
only) does not hide the others, nor matter when its parameter is injected.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Collection
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias

from runner.records.quick import quick
from runner.tools.portable import portable

Kind: TypeAlias = Literal["named", "positional", "args", "kwargs"]

UNKNOWN = inspect.Parameter.empty
"""Stands for a hint that is not there, and for a default that is not there."""

_KINDS: dict[Any, Kind] = {
    inspect.Parameter.POSITIONAL_ONLY: "positional",
    inspect.Parameter.VAR_POSITIONAL: "args",
    inspect.Parameter.VAR_KEYWORD: "kwargs",
}


class SignatureError(Exception):
    """A callable whose signature no JSON Schema can be made of. `parameter` is the culprit, or None."""

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.parameter = parameter


@quick
class Parameter:
    """One parameter. `hint` and `default` are `UNKNOWN` if there is none; `trouble` says why a hint has no meaning."""

    name: str
    kind: Kind
    hint: Any
    default: Any
    trouble: str = ""

    @property
    def required(self) -> bool:
        return self.default is UNKNOWN and self.kind in ("named", "positional")


def parameters(function: Callable[..., Any], injected: Collection[str] = ()) -> list[Parameter]:
    """The parameters in order; hints of injected ones are left alone. Raises `SignatureError` if there is none."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise SignatureError(
            f"the signature of `{name_of(function)}` cannot be read; write its JSON Schema out"
        ) from None
    bound = _bound(function)
    scope = _globals(function)
    return [
        _parameter(each, scope, each.name in injected)
        for each in signature.parameters.values()
        if each.name not in bound
    ]


def name_of(function: Callable[..., Any]) -> str:
    """The function's own name; for an object with `__call__`, that of its class."""
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__name__", None) or type(function).__name__)


def docstring_of(function: Callable[..., Any]) -> str | None:
    """The function's docstring; for an object with `__call__`, that of the method or else of its class."""
    while isinstance(function, partial):
        function = function.func
    if inspect.isroutine(function) or inspect.isclass(function):
        return function.__doc__
    return getattr(type(function).__call__, "__doc__", None) or function.__doc__


def _bound(function: Any) -> set[str]:
    """Names that a partial has fixed by keyword: its author chose them, so the model does not."""
    names: set[str] = set()
    while isinstance(function, partial):
        names.update(function.keywords)
        function = function.func
    return names


def _globals(function: Any) -> dict[str, Any]:
    while isinstance(function, partial):
        function = function.func
    if not (inspect.isroutine(function) or inspect.isclass(function)):
        function = type(function).__call__
    plain = inspect.unwrap(function, stop=lambda each: hasattr(each, "__signature__"))
    return getattr(getattr(plain, "__func__", plain), "__globals__", {})


def _parameter(each: inspect.Parameter, scope: dict[str, Any], injected: bool) -> Parameter:
    kind = _KINDS.get(each.kind, "named")
    if injected or each.annotation is UNKNOWN:
        return Parameter(each.name, kind, UNKNOWN, each.default)
    holder = SimpleNamespace(__annotations__={each.name: each.annotation})
    try:
        hint = typing.get_type_hints(holder, globalns=scope, include_extras=True)[each.name]
    except Exception as error:  # a hint in quotes is code, and may fail in any way that code can
        return Parameter(each.name, kind, UNKNOWN, each.default, trouble=str(error))
    return Parameter(each.name, kind, portable(hint), each.default)
