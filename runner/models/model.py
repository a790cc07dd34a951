"""`Model`: one protocol for whatever answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeGuard, runtime_checkable

from runner.records.completion import Caller, Completion, Sampling, ToolSpec
from runner.records.message import Message


class Model(Protocol):
    """Something that answers a conversation.

    Implementations are safe to share between any number of rollouts on one event loop. They own their retries,
    their concurrency limits and the deadline of each request; the caller may cancel at any await.
    """

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], sampling: Sampling, caller: Caller
    ) -> Completion:
        """Answer `messages`.

        Raises a `ModelError`: `ModelUnavailable` (no answer after all retries), `ModelRefused` (no retry can mend
        it), `ModelGarbled` (an answer that is none), `ContextOverflow` (the prompt does not fit), `ReplayMiss`.
        """
        ...

    async def aclose(self) -> None:
        """Close connections. Called once, when the run ends."""
        ...


@runtime_checkable
class Addressed(Protocol):
    """A model behind an address that somebody else could ask as well."""

    @property
    def url(self) -> str:
        """The complete address of its chat completions."""
        ...

    @property
    def api_key(self) -> str | None: ...

    @property
    def headers(self) -> Mapping[str, str]: ...


def is_addressed(model: Model) -> TypeGuard[Addressed]:
    """What `isinstance(model, Addressed)` says, which is asked of each rollout: the protocol itself takes 8 us."""
    return hasattr(model, "url") and hasattr(model, "api_key") and hasattr(model, "headers")


@runtime_checkable
class Opens(Protocol):
    """A model that has something dear to do before its first call, such as importing a heavy library."""

    async def open(self) -> None:
        """Do it. Called once, before any rollout starts."""
        ...
