"""A completion as the stream events of Strands: the same ones, in the same order, that its `LiteLLMModel` gives."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from runner.records.completion import Completion, Usage
from runner.workflows.turn import cut_short

_STOPS = {"max_tokens": "max_tokens", "content_filter": "content_filtered"}


def stream_events(completion: Completion, blocks: Sequence[dict[str, Any]]) -> Iterator[Any]:
    """The events of an answer whose blocks are `blocks`. What was one text is one delta."""
    yield {"messageStart": {"role": "assistant"}}
    for block in blocks:
        yield from _block_events(block)
    yield {"messageStop": {"stopReason": stop_reason(completion, blocks)}}
    if completion.usage is not None:
        yield {
            "metadata": {"usage": _usage(completion.usage), "metrics": {"latencyMs": round(completion.latency * 1000)}}
        }


def stop_reason(completion: Completion, blocks: Sequence[dict[str, Any]]) -> str:
    """Why the answer ended. Endpoints disagree on the word beside tool calls, so the calls themselves decide."""
    cut = cut_short(completion)
    if cut is not None:
        return _STOPS[cut]
    return "tool_use" if any("toolUse" in block for block in blocks) else "end_turn"


def _block_events(block: dict[str, Any]) -> Iterator[Any]:
    if "toolUse" in block:
        use = block["toolUse"]
        given = use["input"]
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        start: dict[str, Any] = {"toolUse": {"name": use["name"], "toolUseId": use["toolUseId"]}}
        delta: dict[str, Any] = {"toolUse": {"input": text}}
    elif "reasoningContent" in block:
        start, delta = {}, {"reasoningContent": {"text": block["reasoningContent"]["reasoningText"]["text"]}}
    else:
        start, delta = {}, {"text": block["text"]}
    yield {"contentBlockStart": {"start": start}}
    yield {"contentBlockDelta": {"delta": delta}}
    yield {"contentBlockStop": {}}


def _usage(usage: Usage) -> dict[str, int]:
    told = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.total_tokens,
    }
    return {**told, "cacheReadInputTokens": usage.cached_tokens} if usage.cached_tokens else told
