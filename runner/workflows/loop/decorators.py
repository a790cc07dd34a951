"""`@osmosis_reward` and `@osmosis_rubric`: the promise of a reward function, checked where it is defined.

Hints are resolved, so `from __future__ import annotations` breaks nothing. `data_source`, which the platform passes
to each of them, is dropped where the function does not take it.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
Check = Callable[[inspect.BoundArguments], None]

_EMPTY = inspect.Parameter.empty
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def osmosis_reward(function: F) -> F:
    """Check `(solution_str: str, ground_truth: str, extra_info: dict = ...) -> float`, and that a float comes back.

    A function whose first parameter is not called `solution_str` is let be. Sync and async. Raises TypeError: for a
    signature that does not fit at once, for a result that is no float at the call.
    """
    parameters = _parameters(function)
    if not parameters or parameters[0].name != "solution_str":
        return _wrapped(function, parameters, strict=False)
    hints = _hints(function)
    name = function.__name__
    if len(parameters) < 3:
        raise TypeError(f"{name} must take solution_str, ground_truth and extra_info")
    _check_names(name, parameters)
    for each in parameters[:2]:
        _check_hint(name, each, hints, (str,), "str")
    _check_hint(name, parameters[2], hints, (dict, dict | None), "dict")
    if parameters[2].default is _EMPTY:
        raise TypeError(f"{name}: 'extra_info' must have a default, such as None")
    return _wrapped(function, parameters, strict=True)


def osmosis_rubric(function: F) -> F:
    """Check `(solution_str: str, ground_truth: str | None, extra_info) -> float`, and each call of it.

    Sync and async. Raises TypeError.
    """
    parameters, hints, name = _parameters(function), _hints(function), function.__name__
    if len(parameters) < 3:
        raise TypeError(f"{name} must take solution_str, ground_truth and extra_info")
    _check_names(name, parameters)
    _check_hint(name, parameters[0], hints, (str,), "str")
    _check_hint(name, parameters[1], hints, (str, str | None), "str | None")
    for each in parameters[:2]:
        if each.default is not _EMPTY:
            raise TypeError(f"{name}: '{each.name}' must not have a default")

    def check(bound: inspect.BoundArguments) -> None:
        given = bound.arguments
        if not isinstance(given.get("solution_str"), str):
            raise TypeError(f"{name}: 'solution_str' must be a string")
        if not isinstance(given.get("ground_truth"), str | None):
            raise TypeError(f"{name}: 'ground_truth' must be a string or None")
        if "extra_info" not in given:
            raise TypeError(f"{name}: 'extra_info' must be given")

    return _wrapped(function, parameters, strict=True, check=check)


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except (NameError, TypeError):  # a hint that names what is not there yet
        return dict(getattr(function, "__annotations__", {}))


def _check_names(name: str, parameters: Sequence[inspect.Parameter]) -> None:
    for wanted, each in zip(("solution_str", "ground_truth", "extra_info"), parameters, strict=False):
        if each.name != wanted or each.kind in _VARIABLE:
            raise TypeError(f"{name}: '{wanted}' must come where '{each.name}' is")


def _check_hint(name: str, parameter: inspect.Parameter, hints: dict[str, Any], fit: Sequence[Any], shown: str) -> None:
    hint = hints.get(parameter.name)
    members = [hint]
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        members = list(typing.get_args(hint))
    plain = {typing.get_origin(each) or each for each in members}
    allowed = [{each} if isinstance(each, type) else set(typing.get_args(each)) for each in fit]
    if plain not in allowed:
        raise TypeError(f"{name}: '{parameter.name}' must be annotated as {shown}")


def _wrapped(function: F, parameters: Sequence[inspect.Parameter], *, strict: bool, check: Check | None = None) -> F:
    takes_source = any(each.name == "data_source" or each.kind is each.VAR_KEYWORD for each in parameters)
    signature = inspect.signature(function)

    def prepare(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if not takes_source:
            kwargs.pop("data_source", None)
        if check is not None:
            check(signature.bind_partial(*args, **kwargs))

    def result(value: Any) -> Any:
        if strict and type(value) is not float:
            raise TypeError(f"{function.__name__} must return a float, returned {type(value).__name__}")
        return value

    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def asynchronous(*args: Any, **kwargs: Any) -> Any:
            prepare(args, kwargs)
            return result(await function(*args, **kwargs))

        return typing.cast("F", asynchronous)

    @functools.wraps(function)
    def synchronous(*args: Any, **kwargs: Any) -> Any:
        prepare(args, kwargs)
        return result(function(*args, **kwargs))

    return typing.cast("F", synchronous)
