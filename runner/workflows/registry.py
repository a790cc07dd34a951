"""Agents that a module registers by name. A file names them as `"module:NAME"`; `NAME` need be no name of Python's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class _Registered(NamedTuple):
    target: Any
    home: tuple[str, str]


_agents: dict[str, _Registered] = {}


def register_agent(name: str) -> Callable[[T], T]:
    """A decorator: the class or function under it can be named by `[workflow] agent = "module:NAME"`.

    Raises ValueError for a name that something else has.
    """
    if not name or any(character.isspace() or character == ":" for character in name):
        raise ValueError(f"{name!r} cannot be the name of an agent: it is empty, or holds a space or a colon")

    def register(target: T) -> T:
        home = _home(target)
        known = _agents.get(name)
        if known is not None and known.home != home:
            raise ValueError(f"an agent {name!r} is registered already, by {known.home[0]}")
        _agents[name] = _Registered(target, home)
        return target

    return register


def registered_agent(name: str) -> Any:
    """What was registered as `name`; None for a name that was not."""
    known = _agents.get(name)
    return None if known is None else known.target


def registered_agents(module: str | None = None) -> list[str]:
    """The names, in the order of their registration; only those that code of `module` gave."""
    return [name for name, known in _agents.items() if module is None or known.target.__module__ == module]


def unregister_agent(name: str) -> bool:
    """Forget a name; whether there was one."""
    return _agents.pop(name, None) is not None


def _home(target: Any) -> tuple[str, str]:
    """Where something is defined: a module that is imported twice, under two names, registers the same thing."""
    try:
        file = inspect.getsourcefile(target) or str(target.__module__)
    except TypeError:
        file = str(getattr(target, "__module__", ""))
    return file, str(getattr(target, "__qualname__", repr(target)))
