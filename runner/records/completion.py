"""What a model call asks for and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from runner.records.message import Message

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample one completion. `None` means: not sent, the endpoint's own default.

    `extra` is merged into the request body last, untouched.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it: name, description, JSON Schema (2020-12) of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]

    def wire(self) -> dict[str, Any]:
        """The OpenAI `tools` entry."""
        function = {"name": self.name, "description": self.description, "parameters": dict(self.parameters)}
        return {"type": "function", "function": function}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: the rollout a model or tool call belongs to.

    `row` is the dataset row (or, in serve, the request's metadata); `attempt` counts from 0; `role` is
    `"policy"` or the name of a role in `[roles]`. `sample_id` is what the agent calls the rollout's sample, if it does.
    """

    rollout_id: str
    row: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    attempt: int = 0
    role: str = "policy"
    sample_id: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call or a sum of calls, as the endpoint counted them."""

    input_tokens: int = 0
    output_tokens: int = 0
    reasoning_tokens: int = 0
    cached_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cached_tokens + other.cached_tokens,
        )


@dataclass(frozen=True, slots=True)
class Completion:
    """What the policy returned in a turn.

    `message` is the assistant message in OpenAI form, without reasoning; `reasoning` is kept apart.
    `prompt_token_ids`, `token_ids` and `logprobs` are exactly what the endpoint gave, or None: never re-tokenised.
    `usage` is None when the endpoint gave none. Times are in seconds.
    """

    message: Message
    finish_reason: str | None = None
    usage: Usage | None = None
    reasoning: str | None = None
    prompt_token_ids: list[int] | None = None
    token_ids: list[int] | None = None
    logprobs: Any = None
    model: str | None = None
    response_id: str | None = None
    retries: int = 0
    latency: float = 0.0
    cost: float | None = None
    """USD, when a price is known."""
    extra: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    """Anything else worth keeping that the endpoint sent, untouched."""
