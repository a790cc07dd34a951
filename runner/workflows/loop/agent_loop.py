"""`RolloutAgentLoop`: the class that an agent of the first generation inherits from."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from typing import Any

from runner.workflows.loop.context import RolloutContext
from runner.workflows.loop.request import LOCAL_SERVER, RolloutRequest
from runner.workflows.loop.result import RolloutResult


class RolloutAgentLoop(ABC):
    """An agent: a `name`, the tools it offers, and what it does.

    One instance plays all rollouts, many at a time: what belongs to one rollout belongs into `run`. Raises TypeError
    when a class that could be used is defined without a `name`.
    """

    name: str

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not getattr(cls, "name", None) and not _is_abstract(cls):
            raise TypeError(f"Agent loop class {cls.__name__} must define a 'name' class attribute")

    @abstractmethod
    def get_tools(self, request: RolloutRequest) -> list[Any]:
        """The tools of this rollout, as OpenAI function tools; asked before it starts. `[]` for none."""

    @abstractmethod
    async def run(self, ctx: RolloutContext) -> RolloutResult:
        """Play the rollout. End it with `return ctx.complete(messages)` or `return ctx.error(text)`."""

    def get_default_tools(self) -> list[Any]:
        """The tools of a request without content."""
        return self.get_tools(
            RolloutRequest(rollout_id="default", server_url=LOCAL_SERVER, messages=[], completion_params={})
        )


def _is_abstract(cls: type) -> bool:
    # `__abstractmethods__` is not there yet while a class is being defined.
    names = {name for each in cls.__mro__ for name in vars(each)}
    return any(getattr(inspect.getattr_static(cls, name, None), "__isabstractmethod__", False) for name in names)
