"""`Tool`: something the model may call, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias

from runner.records.completion import Caller, ToolSpec

ToolStatus: TypeAlias = Literal["ok", "error", "bad_call", "timeout"]

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ToolScope:
    """What surrounds a call: who asks, and the resources opened for this rollout, by name."""

    caller: Caller
    resources: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What goes back to the model as the content of its tool message.

    `status` says how it went: "ok"; "error", the tool raised or answered with an error; "bad_call", its name or
    arguments were wrong; "timeout". Every status but "ok" carries a sentence that the model can act on.
    `truncated` says that the output was cut, which the content says too. `where` names the frame of user code that
    raised (`tools.py:12 in search`) and `detail` holds the traceback: both for the record, never for the model.
    """

    content: str
    status: ToolStatus = "ok"
    truncated: bool = False
    where: str = ""
    detail: str = ""


class Tool(Protocol):
    """A tool of the plan, shared by all rollouts."""

    @property
    def spec(self) -> ToolSpec: ...

    async def call(self, arguments: dict[str, Any], scope: ToolScope) -> ToolResult:
        """Run the tool on arguments that passed its schema, defaults filled in.

        Never raises for a fault of the tool or of the call: that is a `ToolResult` with its status. Raises
        `ToolError` only when the rollout cannot go on, and cancellation.
        """
        ...
