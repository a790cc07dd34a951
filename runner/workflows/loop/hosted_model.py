"""`HostedModel`: an agent loop's `ctx.llm`, answered by the engine: limits, records, token ids, attribution.

What the engine raises of the model becomes the exception that the first generation raised there, chained to the
original: code that catches one works, and code that lets it pass is not blamed for it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from runner.records.completion import Completion, Sampling, ToolSpec, Usage
from runner.records.failure import ModelError, ModelGarbled, ModelRefused
from runner.workflows.loop.completions import CompletionsResult, MessageDict
from runner.workflows.loop.errors import (
    OsmosisRolloutError,
    OsmosisServerError,
    OsmosisTimeoutError,
    OsmosisTransportError,
    OsmosisValidationError,
)
from runner.workflows.loop.messages import normalize_stop
from runner.workflows.loop.result import RolloutMetrics
from runner.workflows.workflow import AgentWorkflowContext

_SAMPLED = ("temperature", "top_p", "max_tokens", "seed")
_warned: set[str] = set()

log = logging.getLogger(__name__)


class HostedModel:
    """The model of one rollout. `tools` are what it is offered, `sampling` what holds where a call says nothing."""

    def __init__(self, ctx: AgentWorkflowContext[Any], tools: Sequence[ToolSpec], sampling: Sampling) -> None:
        self._ctx = ctx
        self._tools = tools
        self._sent = sampling.extra
        self._calls = 0
        self._seconds = 0.0
        self._usage = Usage()
        self._longest = 0

    async def chat_completions(self, messages: Sequence[MessageDict], **kwargs: Any) -> CompletionsResult:
        """Ask the model. Keywords it does not know are dropped, with one warning for each."""
        sampling = self._sampling(kwargs)
        try:
            completion = await self._ctx.chat(messages, tools=self._tools, **sampling)
        except ModelError as error:
            raise _as_first_generation(error) from error
        self._count(completion)
        return result_of(completion)

    def get_metrics(self) -> RolloutMetrics:
        """What the calls took so far."""
        return RolloutMetrics(
            llm_latency_ms=self._seconds * 1000,
            num_llm_calls=self._calls,
            prompt_tokens=self._usage.input_tokens,
            response_tokens=self._usage.output_tokens,
            max_context_tokens=self._longest,
        )

    def _sampling(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        sampling = {name: kwargs[name] for name in _SAMPLED if name in kwargs}
        stop = normalize_stop(kwargs.get("stop"))
        if stop is not None:
            sampling["stop"] = stop
        if kwargs.get("logprobs") is not None:
            sampling["logprobs"] = kwargs["logprobs"]
        for name, value in kwargs.items():
            # What the rollout's own sampling sends anyway comes back with `**ctx.request.completion_params`.
            if name not in (*_SAMPLED, "stop", "logprobs") and self._sent.get(name, _warned) != value:
                _warn(name)
        return sampling

    def _count(self, completion: Completion) -> None:
        self._calls += 1
        self._seconds += completion.latency
        if completion.usage is not None:
            self._usage = self._usage + completion.usage
            self._longest = max(self._longest, completion.usage.total_tokens)


def _warn(name: str) -> None:
    if name not in _warned:
        _warned.add(name)
        log.warning("ctx.chat(%s=...) is dropped: set it in `[sampling] extra` to send it with each call", name)


def completion_params(sampling: Sampling) -> dict[str, Any]:
    """How a rollout is sampled, as the keywords of `ctx.chat`: what is not set is left out."""
    params = {name: getattr(sampling, name) for name in _SAMPLED if getattr(sampling, name) is not None}
    if sampling.stop:
        params["stop"] = list(sampling.stop)
    return {**params, **sampling.extra}


def result_of(completion: Completion) -> CompletionsResult:
    """A completion as an agent loop is given it."""
    usage = completion.usage
    counted = {} if usage is None else {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
    }  # fmt: skip
    return CompletionsResult(
        message=dict(completion.message),
        token_ids=completion.token_ids or [],
        logprobs=completion.logprobs or [],
        usage=counted,
        finish_reason=completion.finish_reason or "stop",
    )


def _as_first_generation(error: ModelError) -> OsmosisRolloutError:
    text, status = str(error), error.status
    if isinstance(error, ModelRefused | ModelGarbled) or (status is not None and status < 500):
        return OsmosisValidationError(text, status or 200)
    if status is not None:
        return OsmosisServerError(text, status)
    timed_out = any(word in text for word in ("no answer within", "timed out", "time-out", "timeout"))
    return OsmosisTimeoutError(text) if timed_out else OsmosisTransportError(text)
