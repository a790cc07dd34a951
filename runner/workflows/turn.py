"""What our own agents ask of a completion: the message to resend, and whether it ends the rollout by itself."""

from __future__ import annotations

from runner.records.completion import Completion
from runner.records.message import Message

_UNSENT = frozenset({"reasoning", "reasoning_content", "reasoning_details"})

_CUT_SHORT = {
    "length": "max_tokens",
    "max_tokens": "max_tokens",
    "model_length": "max_tokens",  # Mistral's word for an answer that filled the context
    "content_filter": "content_filter",
}


def resendable(completion: Completion) -> Message:
    """The assistant message as it goes back into the conversation: as it came, without reasoning."""
    return {key: value for key, value in completion.message.items() if key not in _UNSENT}


def cut_short(completion: Completion) -> str | None:
    """The stop reason when the endpoint broke the answer off, else None."""
    return _CUT_SHORT.get(completion.finish_reason or "")
