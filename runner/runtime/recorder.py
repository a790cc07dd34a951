"""What happened becomes what is kept: the recorder is just the first listener of a rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.records.completion import Completion
from runner.records.event import (
    Event,
    ModelAnswered,
    ModelBypassed,
    ModelCalled,
    ModelFailed,
    ToolEnded,
    ToolsAnswered,
    ToolStarted,
)
from runner.records.message import Message
from runner.records.rollout import Sample


class Recorder:
    """Keeps the conversation as it went over the wire, each model call and each tool call.

    The conversation is what the last model call saw, plus what came after it: a workflow that edits its messages
    between turns is recorded as the policy saw it. Each message is a copy: editing one afterwards changes nothing here.
    """

    __slots__ = ("_sample_id", "_written", "calls", "messages", "model_seconds", "tool_seconds", "tool_spans")

    def __init__(self, prompt: Sequence[Message]) -> None:
        self.messages: list[Message] = list(prompt)
        self.calls: list[dict[str, Any]] = []
        self.tool_spans: list[dict[str, Any]] = []
        self._written: dict[str, int] = {}
        self.model_seconds = 0.0
        self.tool_seconds = 0.0
        self._sample_id = ""

    def __call__(self, event: Event) -> None:
        hear = _HEARD.get(type(event))
        if hear is not None:
            hear(self, event)

    def _called(self, event: ModelCalled) -> None:
        self.messages = [dict(message) for message in event.messages]
        self._sample_id = event.sample_id

    def _answered(self, event: ModelAnswered) -> None:
        completion = event.completion
        self.messages.append(dict(completion.message))
        self.model_seconds += completion.latency
        self.calls.append({**call_record(event.turn, completion), **self._named()})

    def _failed(self, event: ModelFailed) -> None:
        self.model_seconds += event.seconds
        self.calls.append(
            {
                "turn": event.turn,
                "latency": round(event.seconds, 6),
                "finish_reason": None,
                "usage": None,
                "retries": event.retries,
                "error": event.failure.to_json(),
                **self._named(),
            }
        )

    def _bypassed(self, event: ModelBypassed) -> None:
        self.model_seconds += event.seconds
        nothing = {"turn": 0, "finish_reason": None, "usage": None, "retries": 0}
        self.calls.append({**nothing, "latency": round(event.seconds, 6), "bypassed": True})

    def _named(self) -> dict[str, str]:
        return {"sample_id": self._sample_id} if self._sample_id else {}

    def _tool_started(self, event: ToolStarted) -> None:
        if event.call.as_text:
            self._written[event.call.id] = len(self._written)

    def _tool_ended(self, event: ToolEnded) -> None:
        self.tool_seconds += event.seconds
        self.tool_spans.append(_tool_span(event))

    def _tools_answered(self, event: ToolsAnswered) -> None:
        self.messages.extend(dict(message) for message in event.messages)

    def sample(
        self, messages: Sequence[Message] | None, metrics: Mapping[str, float], info: Mapping[str, Any]
    ) -> Sample:
        """The sample; `messages` is what the workflow returned, or None for the recorded conversation."""
        kept = self.messages if messages is None else messages
        spans = self.tool_spans
        if self._written:  # their order is told nowhere else
            spans = sorted(spans, key=lambda span: self._written.get(span["tool_call_id"], 0))
        return Sample(tuple(kept), tuple(self.calls), tuple(spans), metrics, info)


_HEARD: dict[type[Event], Any] = {
    ModelCalled: Recorder._called,
    ModelAnswered: Recorder._answered,
    ModelFailed: Recorder._failed,
    ModelBypassed: Recorder._bypassed,
    ToolStarted: Recorder._tool_started,
    ToolEnded: Recorder._tool_ended,
    ToolsAnswered: Recorder._tools_answered,
}


def call_record(turn: int, completion: Completion) -> dict[str, Any]:
    """A model call as the journal keeps it; token ids and log-probabilities only if the endpoint gave them."""
    record: dict[str, Any] = {
        "turn": turn,
        "latency": round(completion.latency, 6),
        "finish_reason": completion.finish_reason,
        "usage": usage_record(completion),
        "retries": completion.retries,
    }
    for key, value in (
        ("model", completion.model),
        ("id", completion.response_id),
        ("reasoning", completion.reasoning),
        ("prompt_token_ids", completion.prompt_token_ids),
        ("token_ids", completion.token_ids),
        ("logprobs", completion.logprobs),
        ("cost", completion.cost),
    ):
        if value is not None:
            record[key] = value
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
    call = event.call
    span: dict[str, Any] = {
        "turn": event.turn,
        "tool_call_id": call.id,
        "name": call.name,
        "status": event.status,
        "seconds": round(event.seconds, 6),
    }
    if call.as_text:
        span["arguments"] = call.arguments
    if event.truncated:
        span["truncated"] = True
    if event.message:
        span["message"] = event.message
    if event.where:
        span["where"] = event.where
    return span
