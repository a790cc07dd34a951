"""What an agent loop looks like from outside: asked of every agent, so that only a file with one pays for hosting."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, runtime_checkable

from runner.records.completion import ToolSpec


def is_loop(target: Any) -> bool:
    """Whether `target` is an agent loop, a class or an instance, ours or of an installed SDK."""
    kind = target if inspect.isclass(target) else type(target)
    return any(each.__name__ == "RolloutAgentLoop" for each in kind.__mro__)


@runtime_checkable
class Offers(Protocol):
    """Something that makes workflows and says what they offer the model, whatever the tools of the file."""

    @property
    def offered(self) -> tuple[ToolSpec, ...]: ...


def offered_beside(maker: object, file_tools: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    """What the model is offered by the workflows of `maker` in a file with these tools: a loop may choose of them."""
    if not isinstance(maker, Offers):
        return file_tools
    ask = getattr(maker, "offered_with", None)
    offered: tuple[ToolSpec, ...] = maker.offered if ask is None else ask(file_tools)
    return offered
