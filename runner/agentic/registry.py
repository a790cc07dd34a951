"""Agents by name: those of the third seed, and those that code registers.

One registry with the files': what `@register_agent("name")` names here, `[workflow] agent = "module:name"` finds too.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from runner.workflows.registry import register_agent, registered_agent, registered_agents, unregister_agent

T = TypeVar("T")

_ours: dict[str, Any] = {}


def builtin_agent(name: str) -> Callable[[T], T]:
    """A decorator for the agents that come with the library."""

    def put(kind: T) -> T:
        _ours[name] = kind
        return kind

    return put


def get_agent_class(name: str) -> Any:
    """The agent of that name, or None. A registered one goes before one of ours."""
    import_module("runner.agentic.agents")
    return registered_agent(name) or _ours.get(name)


def list_agents() -> list[str]:
    """All names: ours, then those registered, in the order of their registration."""
    import_module("runner.agentic.agents")
    return list(dict.fromkeys([*_ours, *registered_agents()]))


def clear_registry() -> None:
    """Forget every registered agent; ours stay."""
    for name in registered_agents():
        unregister_agent(name)


class AgentRegistry:
    """The same as a class."""

    register = staticmethod(register_agent)
    get = staticmethod(get_agent_class)
    list = staticmethod(list_agents)
    clear = staticmethod(clear_registry)


__all__ = [
    "AgentRegistry",
    "builtin_agent",
    "clear_registry",
    "get_agent_class",
    "list_agents",
    "register_agent",
]
