"""`typing.TypedDict` as pydantic can read it: before Python 3.12 it only takes that of typing_extensions."""

from __future__ import annotations

import sys
import types
import typing
from typing import Any


def portable(hint: Any, inside: tuple[Any, ...] = ()) -> Any:
    """`hint` with each `typing.TypedDict` in it made again by typing_extensions; one that refers to itself stays."""
    if sys.version_info >= (3, 12):
        return hint
    if typing.is_typeddict(hint):
        return hint if hint in inside else _remade(hint, (*inside, hint))
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is None or origin is typing.Literal:
        return hint
    if origin is typing.Annotated:
        made = portable(arguments[0], inside)
        return hint if made is arguments[0] else typing.Annotated[(made, *hint.__metadata__)]
    parts = tuple(portable(each, inside) for each in arguments)
    if all(new is old for new, old in zip(parts, arguments, strict=True)):
        return hint
    return typing.Union[parts] if origin in (typing.Union, types.UnionType) else origin[parts]  # noqa: UP007


def _remade(hint: Any, inside: tuple[Any, ...]) -> Any:
    import typing_extensions

    fields: dict[str, Any] = {}
    for name, each in typing.get_type_hints(hint, include_extras=True).items():
        mark, plain = typing.get_origin(each), each
        if mark in (typing.Required, typing.NotRequired):  # hints in quotes hid it from `__required_keys__`
            (plain,) = typing.get_args(each)
        else:
            mark = typing.Required if name in hint.__required_keys__ else typing.NotRequired
        fields[name] = mark[portable(plain, inside)]
    make: Any = typing_extensions.TypedDict
    remade = make(hint.__name__, fields)
    remade.__doc__, remade.__module__ = hint.__doc__, hint.__module__
    return remade
