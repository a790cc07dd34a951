"""Agents that the broken files name."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from runner.workflows.workflow import AgentWorkflow, AgentWorkflowContext


@dataclass
class PlannerConfig:
    """What the planner is told."""

    depth: int
    style: str = "short"


class Planner(AgentWorkflow[PlannerConfig]):
    """Plans, then answers."""

    async def run(self, ctx: AgentWorkflowContext[PlannerConfig]) -> None:
        await ctx.complete()


class Half(AgentWorkflow[Any]):
    """Leaves the planning to whoever inherits it."""

    async def run(self, ctx: AgentWorkflowContext[Any]) -> None:
        await self.plan(ctx)

    @abstractmethod
    async def plan(self, ctx: AgentWorkflowContext[Any]) -> None: ...


class Blocking(AgentWorkflow[Any]):
    """Forgot to be async."""

    def run(self, ctx: AgentWorkflowContext[Any]) -> None:  # type: ignore[override]
        return None


class Notebook:
    """Not an agent at all."""
