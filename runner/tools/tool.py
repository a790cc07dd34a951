"""`Tool`: something the model may call, and what it answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from runner.records.completion import Caller, ToolSpec

if TYPE_CHECKING:
    from runner.sandboxes.handle import SandboxHandle

ToolStatus: TypeAlias = Literal["ok", "error", "bad_call", "timeout"]

Closer: TypeAlias = Callable[[], Awaitable[None]]

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Question:
    """A call that somebody must consent to before it is made, and why."""

    tool: str
    arguments: Mapping[str, Any]
    reason: str = ""
    rollout_id: str = ""


Ask: TypeAlias = Callable[[Question], Awaitable[bool]]
"""Whether a person consents."""


@dataclass(frozen=True, slots=True)
class ToolScope:
    """What surrounds the calls of one rollout: who asks, its resources and its sandboxes by name, and its state.

    A tool is shared by all rollouts: what it must remember between two calls of one (a shell, what can be undone) goes
    into `state`, under a key of the tool's own name, and is let go by a closer given to `on_close`.
    """

    caller: Caller
    resources: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    sandboxes: Mapping[str, SandboxHandle] = field(default_factory=lambda: _EMPTY)
    state: dict[str, Any] = field(default_factory=dict)
    closers: list[Closer] = field(default_factory=list)
    """What `on_close` was given, in that order."""
    ask: Ask | None = None
    """Whoever is there to be asked, if anybody is."""

    def on_close(self, closer: Closer) -> None:
        """Have `closer` awaited once when the agent has ended, before its sandboxes stop; the last one given first."""
        self.closers.append(closer)


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
