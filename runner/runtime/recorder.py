"""Events become a sample. The recorder is just the first listener of a rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.records.completion import Completion
from runner.records.event import (
    Event,
    ModelAnswered,
    ModelCalled,
    ModelFailed,
    ToolEnded,
    ToolsAnswered,
)
from runner.records.message import Message
from runner.records.rollout import Sample


class Recorder:
    """Keeps the conversation as it went over the wire, each model call and each tool call.

    The conversation is what the last model call saw, plus what came after it: a workflow that edits its messages
    between turns is recorded as the policy saw it.
    """

    __slots__ = ("calls", "messages", "model_seconds", "tool_seconds", "tool_spans")

    def __init__(self, prompt: Sequence[Message]) -> None:
        self.messages: list[Message] = list(prompt)
        self.calls: list[dict[str, Any]] = []
        self.tool_spans: list[dict[str, Any]] = []
        self.model_seconds = 0.0
        self.tool_seconds = 0.0

    def __call__(self, event: Event) -> None:
        match event:
            case ModelCalled(messages=messages):
                self.messages = list(messages)
            case ModelAnswered(turn=turn, completion=completion):
                self.messages.append(completion.message)
                self.model_seconds += completion.latency
                self.calls.append(call_record(turn, completion))
            case ModelFailed(turn=turn, failure=failure):
                self.calls.append({"turn": turn, "error": failure.to_json()})
            case ToolEnded():
                self.tool_seconds += event.seconds
                self.tool_spans.append(_tool_span(event))
            case ToolsAnswered(messages=messages):
                self.messages.extend(messages)
            case _:
                pass

    def sample(self, messages: Sequence[Message] | None, metrics: Mapping[str, float]) -> Sample:
        """The sample; `messages` is what the workflow returned, or None for the recorded conversation."""
        return Sample(
            messages=tuple(self.messages if messages is None else messages),
            calls=tuple(self.calls),
            tool_spans=tuple(self.tool_spans),
            metrics=dict(metrics),
        )


def call_record(turn: int, completion: Completion) -> dict[str, Any]:
    """A model call as the journal keeps it; token ids and log-probabilities only if the endpoint gave them."""
    record: dict[str, Any] = {
        "turn": turn,
        "latency": round(completion.latency, 6),
        "finish_reason": completion.finish_reason,
        "usage": usage_record(completion),
        "retries": completion.retries,
    }
    optional = {
        "model": completion.model,
        "id": completion.response_id,
        "reasoning": completion.reasoning,
        "prompt_token_ids": completion.prompt_token_ids,
        "token_ids": completion.token_ids,
        "logprobs": completion.logprobs,
        "cost": completion.cost,
    }
    record.update((key, value) for key, value in optional.items() if value is not None)
    if completion.extra:
        record["extra"] = dict(completion.extra)
    return record


def usage_record(completion: Completion) -> dict[str, int] | None:
    """The usage of a call, or None when the endpoint gave none."""
    usage = completion.usage
    if usage is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cached_tokens": usage.cached_tokens,
    }


def _tool_span(event: ToolEnded) -> dict[str, Any]:
    span: dict[str, Any] = {
        "turn": event.turn,
        "tool_call_id": event.call.id,
        "name": event.call.name,
        "status": event.status,
        "seconds": round(event.seconds, 6),
    }
    if event.truncated:
        span["truncated"] = True
    if event.message:
        span["message"] = event.message
    return span
