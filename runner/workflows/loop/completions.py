"""A chat call of the first generation: what goes out, what comes back, and what an agent is given of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from runner.workflows.loop.noun import Noun

if TYPE_CHECKING:
    from runner.workflows.loop.result import RolloutMetrics

MessageDict: TypeAlias = dict[str, Any]
"""One chat message in OpenAI's form."""


class CompletionsRequest(Noun):
    """The body of a chat call."""

    model: str = "default"
    messages: list[MessageDict]
    rollout_id: str
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 512
    stop: list[str] | None = None
    logprobs: bool = True


class CompletionUsage(Noun):
    """Tokens of one call."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class CompletionsChoice(Noun):
    """One answer of a call."""

    index: int = 0
    message: MessageDict
    finish_reason: str | None = "stop"


class CompletionsResponse(Noun):
    """The answer to a chat call."""

    id: str = ""
    object: str = "chat.completion"
    created: int = 0
    model: str = "default"
    choices: list[CompletionsChoice]
    usage: CompletionUsage | None = None
    token_ids: list[int] | None = None
    logprobs: Any = None
    prompt_token_ids: list[int] | None = None


@dataclass(frozen=True)
class CompletionsResult:
    """What the model answered. `message` is as it came; `token_ids` and `logprobs` are empty where none were given."""

    message: MessageDict
    token_ids: Any = field(default_factory=list)
    logprobs: Any = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    finish_reason: str = "stop"

    @property
    def has_tool_calls(self) -> bool:
        """Whether the model wants tools."""
        return bool(self.message.get("tool_calls"))

    @property
    def tool_calls(self) -> Any:
        """The tool calls as they came: None where the answer says null."""
        return self.message.get("tool_calls", [])

    @property
    def content(self) -> Any:
        """The content as it came."""
        return self.message.get("content")


class LLMClientProtocol(Protocol):
    """Who answers an agent loop."""

    async def chat_completions(self, messages: Sequence[MessageDict], **kwargs: Any) -> CompletionsResult: ...

    def get_metrics(self) -> RolloutMetrics: ...
