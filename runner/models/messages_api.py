"""What Anthropic's Messages API itself said, put back into an answer that litellm translated into OpenAI's form.

litellm makes "stop" of every stop reason it does not know, an id of its own, and a count of thinking tokens that nobody
counted; the body as it came knows better. Pure: one body in, one answer out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

PAUSED = "pause_turn"
"""The stop reason of a turn that the provider would go on with itself, among tools that it runs."""

_FINISH = {
    "end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length",
    "model_context_window_exceeded": "length", "refusal": "content_filter",
}  # fmt: skip
_OWN_CALL = "srvtoolu_"
"""The ids of calls that the provider has run already."""


def as_said(answer: Any, body: str) -> Any:
    """`answer`, litellm's table, with what `body` says in its place; as it is where `body` is of another API."""
    said = _message_in(body)
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if said is None or not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return answer
    choice = {**choices[0], "message": _without_repeats(choices[0].get("message"))}
    stop = said.get("stop_reason")
    if isinstance(stop, str):
        choice["finish_reason"] = _FINISH.get(stop, stop)
    found = {**answer, "choices": [choice], "usage": _counted(answer.get("usage"), said.get("usage"))}
    return {**found, "id": said["id"]} if isinstance(said.get("id"), str) else found


def _message_in(body: str) -> Mapping[str, Any] | None:
    """The message that `body` is; None for the body of another API."""
    if not body.lstrip().startswith("{") or '"stop_reason"' not in body:
        return None
    try:
        value = json.loads(body)
    except ValueError:
        return None
    return value if isinstance(value, dict) and value.get("type") == "message" else None


def _without_repeats(message: Any) -> Any:
    """Without the thinking blocks that stand in the message anyway, and the calls that are answered already."""
    if not isinstance(message, dict):
        return message
    clean = dict(message)
    aside = clean.get("provider_specific_fields")
    if isinstance(aside, dict):
        kept = {key: value for key, value in aside.items() if key != "thinking_blocks" and value is not None}
        clean["provider_specific_fields"] = kept or None
    calls = clean.get("tool_calls")
    if isinstance(calls, list):
        clean["tool_calls"] = [call for call in calls if not _is_own(call)]
    return clean


def _is_own(call: Any) -> bool:
    return isinstance(call, dict) and str(call.get("id")).startswith(_OWN_CALL)


def _counted(usage: Any, said: Any) -> Any:
    """`usage` with the thinking tokens that the endpoint counted, and no guess where it counted none."""
    if not isinstance(usage, dict):
        return usage
    details = said.get("output_tokens_details") if isinstance(said, dict) else None
    thinking = details.get("thinking_tokens") if isinstance(details, dict) else None
    return {**usage, "completion_tokens_details": {"reasoning_tokens": thinking}}
