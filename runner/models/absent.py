"""`AbsentModel`: the policy of a command that asks none, such as `regrade` and `test`."""

from __future__ import annotations

from collections.abc import Sequence

from runner.records.completion import Caller, Completion, Sampling, ToolSpec
from runner.records.failure import ModelRefused
from runner.records.message import Message


class AbsentModel:
    """Refuses every call, saying `why`."""

    def __init__(self, why: str) -> None:
        self._why = why

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, caller: Caller
    ) -> Completion:
        """Raises `ModelRefused`, always."""
        raise ModelRefused(self._why)

    async def aclose(self) -> None:
        """Nothing is open."""
