"""`RolloutContext` of the first generation: what `run` is handed."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from runner.workflows.loop.completions import CompletionsResult, LLMClientProtocol, MessageDict
from runner.workflows.loop.request import RolloutRequest
from runner.workflows.loop.result import RolloutMetrics, RolloutResult, RolloutStatus

Log: TypeAlias = Callable[[str, Mapping[str, Any]], None]
CallTools: TypeAlias = Callable[[Sequence[Any]], Awaitable[list[MessageDict]]]


@dataclass
class RolloutContext:
    """The request, the tools as `get_tools` gave them, and the way to the model.

    `log` hears the events, `play_tools` runs tools of the file; without them events go nowhere and there are no tools
    to run.
    """

    request: RolloutRequest
    tools: list[Any]
    llm: LLMClientProtocol
    log: Log | None = field(default=None, repr=False)
    play_tools: CallTools | None = field(default=None, repr=False)
    _started: float = field(default_factory=time.monotonic, repr=False)
    _tool_calls: int = field(default=0, repr=False)
    _tool_latency_ms: float = field(default=0.0, repr=False)

    @property
    def debug_enabled(self) -> bool:
        """Whether events are written anywhere."""
        return self.log is not None

    async def chat(self, messages: Sequence[MessageDict], **kwargs: Any) -> CompletionsResult:
        """Ask the model. Keywords are `temperature, top_p, max_tokens, stop, logprobs`; others are dropped."""
        return await self.llm.chat_completions(messages, **kwargs)

    async def call_tools(self, tool_calls: Sequence[Any]) -> list[MessageDict]:
        """Run calls of the file's `[tools]` in parallel, with its limits; their tool messages, in order.

        Raises RuntimeError outside a workflow file.
        """
        if self.play_tools is None:
            raise RuntimeError("there are no tools of a file here: run this agent loop from a workflow file")
        return await self.play_tools(tool_calls)

    def complete(
        self,
        final_messages: list[MessageDict] | None = None,
        finish_reason: str = "stop",
        reward: float | None = None,
        *,
        messages: list[MessageDict] | None = None,
    ) -> RolloutResult:
        """The result of a rollout that ended well. `messages` is another word for `final_messages`.

        Raises TypeError for none of them, and for both.
        """
        if (final_messages is None) == (messages is None):
            raise TypeError("complete() takes the final messages, once: `ctx.complete(messages)`")
        final = final_messages if final_messages is not None else messages
        done = RolloutStatus.COMPLETED.value
        return RolloutResult(done, final or [], finish_reason, metrics=self._metrics(), reward=reward)

    def error(self, error_message: str, final_messages: list[MessageDict] | None = None) -> RolloutResult:
        """The result of a rollout that went wrong."""
        return RolloutResult(
            RolloutStatus.ERROR.value, final_messages or [], "error", error_message, metrics=self._metrics()
        )

    def record_tool_call(self, latency_ms: float = 0.0) -> None:
        """Count a tool call that took so many milliseconds."""
        self._tool_calls += 1
        self._tool_latency_ms += latency_ms

    def log_event(self, event_type: str, /, **data: Any) -> None:
        """Write a line to the rollout's event log; nothing where none is kept."""
        if self.log is not None:
            self.log(event_type, data)

    def _metrics(self) -> RolloutMetrics:
        answered = self.llm.get_metrics()
        return answered.model_copy(
            update={
                "total_latency_ms": (time.monotonic() - self._started) * 1000,
                "num_tool_calls": self._tool_calls,
                "tool_latency_ms": self._tool_latency_ms,
            }
        )
