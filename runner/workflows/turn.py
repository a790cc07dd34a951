"""What our own agents ask of a completion: the message to resend, and whether it ends the rollout by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.records.completion import Completion
from runner.records.message import Message

_UNSENT = frozenset({"reasoning", "reasoning_content", "reasoning_details"})

_CUT_SHORT = {
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "max_tokens",  # Mistral's word for an answer that filled the context
    "content_filter": "content_filter",
}


def resendable(completion: Completion, *, reasoning: bool = False) -> Message:
    """The assistant message as it goes back into the conversation: as it came, without reasoning or with it.

    With it, as `reasoning_content`, and `reasoning_details` as they came: the two words that endpoints read. Thinking
    blocks that an endpoint signed are part of the message either way: whoever signs them wants them back.
    """
    message = {key: value for key, value in completion.message.items() if key not in _UNSENT}
    if reasoning:
        thoughts = completion.reasoning or completion.message.get("reasoning_content")
        details = _details(completion)
        message.update({"reasoning_content": thoughts} if thoughts else {})
        message.update({"reasoning_details": details} if details else {})
    return message


def _details(completion: Completion) -> Any:
    """OpenRouter's `reasoning_details`, which litellm puts among the fields of the provider."""
    aside = completion.extra.get("provider_specific_fields")
    places = (completion.extra, completion.message, aside if isinstance(aside, Mapping) else {})
    return next((place["reasoning_details"] for place in places if place.get("reasoning_details")), None)


def cut_short(completion: Completion) -> str | None:
    """The stop reason when the endpoint broke the answer off, else None."""
    return _CUT_SHORT.get(completion.finish_reason or "")
