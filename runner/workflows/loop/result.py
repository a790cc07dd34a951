"""How an agent loop ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from runner.workflows.loop.noun import Noun


class RolloutStatus(StrEnum):
    """How a rollout ended: the first two are the first generation's words, the others what came after them."""

    COMPLETED = "COMPLETED"
    ERROR = "ERROR"
    PENDING = "pending"
    SUCCESS = "success"
    FAILURE = "failure"
    CANCELLED = "cancelled"


class RolloutMetrics(Noun):
    """What a rollout took. Latencies are in milliseconds."""

    total_latency_ms: float = 0.0
    llm_latency_ms: float = 0.0
    tool_latency_ms: float = 0.0
    num_llm_calls: int = 0
    num_tool_calls: int = 0
    prompt_tokens: int = 0
    response_tokens: int = 0
    max_context_tokens: int = 0


@dataclass
class RolloutResult:
    """What `run` returns: made by `ctx.complete` or `ctx.error`."""

    status: str
    final_messages: list[dict[str, Any]] = field(default_factory=list)
    finish_reason: str = "stop"
    error_message: str | None = None
    metrics: RolloutMetrics | None = None
    reward: float | None = None
