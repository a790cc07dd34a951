"""What the wire says of a failure: one of its four categories, and a text that is short and holds no key."""

from __future__ import annotations

from collections.abc import Sequence

from runner.records.failure import Failure
from runner.records.rollout import Outcome
from runner.serve.dialects.encode import scrubbed
from runner.serve.start import Start

TIMEOUT, VALIDATION, HTTP, AGENT = "timeout", "validation_error", "http_error", "agent_error"

MAX_TEXT = 4096
"""Bytes of an error text."""
_SHORTEST_KEY = 8
"""A shorter key is not looked for in texts: it would be found in ordinary words."""

_BY_KIND = {
    "rollout_timeout": TIMEOUT,
    "grader_timeout": TIMEOUT,
    "bad_return": VALIDATION,
    "bad_limits": VALIDATION,
    "bad_sampling": VALIDATION,
    "many_samples": VALIDATION,
    "grader_bad_score": VALIDATION,
    "grader_silent": VALIDATION,
    "no_label": VALIDATION,
    "no_grader": VALIDATION,
    "judge_unavailable": HTTP,
}
_BY_ERROR = {
    "TimeoutError": TIMEOUT,
    "ValueError": VALIDATION,
    "TypeError": VALIDATION,
    "AssertionError": VALIDATION,
    "ValidationError": VALIDATION,
    "JSONDecodeError": VALIDATION,
    "UnicodeDecodeError": VALIDATION,
    "UnicodeEncodeError": VALIDATION,
}
"""By the class of an error of user code, with which its failure's message begins."""


def category_of(failure: Failure) -> str:
    """timeout, validation_error, http_error (the model endpoint) or agent_error."""
    known = _BY_KIND.get(failure.kind)
    if known is not None:
        return known
    if failure.boundary == "model":
        return HTTP
    if failure.boundary == "config":
        return VALIDATION
    return _BY_ERROR.get(failure.message.partition(":")[0], AGENT)


def error_text(text: str, start: Start, secrets: Sequence[str] = ()) -> str:
    """The text as it may leave: without the start's keys and `secrets`, encodable, at most `MAX_TEXT` bytes."""
    for secret in (start.chat.key, start.callback_key, *secrets):
        if secret and len(secret) >= _SHORTEST_KEY:
            text = text.replace(secret, "***")
    text = scrubbed(text)
    raw = text.encode()
    if len(raw) <= MAX_TEXT:
        return text
    return raw[: MAX_TEXT - 3].decode("utf-8", "ignore") + "…"


def failure_text(start: Start, outcome: Outcome) -> str:
    """Why a rollout has no result, in the words its controller knows."""
    failure = outcome.failure
    if outcome.status == "cancelled":
        return f"rollout was cancelled ({outcome.stop_reason})"
    if failure is None:
        return f"the rollout ended without a result: {outcome.stop_reason}"
    # A deadline of the file's own is told in the file's words: there its key can be found.
    if failure.kind == "rollout_timeout" and "time" in start.limits:
        queued = outcome.timing.get("queued", 0.0)
        waited = f" ({queued:.1f}s of it spent queued)" if queued >= 0.1 else ""
        return f"workflow exceeded its {start.limits['time']:g}s deadline{waited}"
    return failure.message or failure.kind
