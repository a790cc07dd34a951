"""Agent loops by name."""

from __future__ import annotations

from runner.workflows.loop.agent_loop import RolloutAgentLoop
from runner.workflows.loop.errors import AgentLoopNotFoundError


class AgentLoopRegistry:
    """Agent loops by their names."""

    def __init__(self) -> None:
        self._loops: dict[str, RolloutAgentLoop] = {}

    def register(self, loop: RolloutAgentLoop) -> None:
        """Add `loop`. Raises ValueError for a name that is taken."""
        if loop.name in self._loops:
            raise ValueError(f"Agent loop '{loop.name}' is already registered")
        self._loops[loop.name] = loop

    def unregister(self, name: str) -> bool:
        """Remove the loop of that name; whether there was one."""
        return self._loops.pop(name, None) is not None

    def get(self, name: str) -> RolloutAgentLoop | None:
        """The loop of that name, or None."""
        return self._loops.get(name)

    def list_names(self) -> list[str]:
        """All names, in the order of their registration."""
        return list(self._loops)

    def clear(self) -> None:
        """Forget all loops."""
        self._loops.clear()


_registry = AgentLoopRegistry()


def register_agent_loop(loop: RolloutAgentLoop) -> None:
    """Add `loop` to the process's registry. Raises ValueError for a name that is taken."""
    _registry.register(loop)


def unregister_agent_loop(name: str) -> bool:
    """Remove the loop of that name; whether there was one."""
    return _registry.unregister(name)


def get_agent_loop(name: str) -> RolloutAgentLoop:
    """The loop of that name. Raises `AgentLoopNotFoundError`, which names those there are."""
    loop = _registry.get(name)
    if loop is None:
        raise AgentLoopNotFoundError(name, _registry.list_names())
    return loop


def list_agent_loops() -> list[str]:
    """The names of all registered loops."""
    return _registry.list_names()
