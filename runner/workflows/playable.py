"""`Playable`: what is no workflow, and says itself how the engine plays it.

The floors above have agents of their own kinds. A file names them as it names any other; `build` need not know them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from runner.workflows.workflow import AgentWorkflow


@runtime_checkable
class WorkflowsWithTools(Protocol):
    """Makes the workflow of each rollout; `tools` (of `runner.tools`) are there beside those of the file, by name."""

    @property
    def tools(self) -> Mapping[str, Any]: ...

    def __call__(self) -> AgentWorkflow[Any]: ...


Prepare = Callable[[Any, Mapping[str, Any]], WorkflowsWithTools]
"""From what a reference names and the table `[workflow] config` to what plays it. Raises `WorkflowMisfit`."""


def playing_of(target: Any) -> Prepare | None:
    """How `target`, a class or an object, is played by its own word: its attribute `__workflow__`; None without."""
    found: Prepare | None = getattr(target, "__workflow__", None)
    return found if callable(found) else None


def brought_tools(maker: object) -> Mapping[str, Any]:
    """The tools that the workflows of `maker` bring along; none for most."""
    return maker.tools if isinstance(maker, WorkflowsWithTools) else {}
