"""What a callback says, and everything that is wrong with it. Pure: bodies in, findings out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from runner.simulate.decode import Finding, shown
from runner.simulate.history import COMPLETION, History, Said
from runner.simulate.starts import AGENT_LOOP, MULTI_SAMPLE

_FIELDS = {
    COMPLETION: ("status", "rollout_id", "extra_fields", "err_message", "err_category"),
    "grader": ("status", "rollout_id", "err_message", "err_category"),
}
_AGENT_LOOP_FIELDS = ("rollout_id", "status", "final_messages")
_SAMPLE = ("messages", "label", "reward", "remove_sample", "metrics", "extra_fields")
_CATEGORIES = ("timeout", "validation_error", "http_error", "agent_error", None)
_METRICS = ("total_latency_ms", "llm_latency_ms", "tool_latency_ms", "num_llm_calls", "num_tool_calls",
            "prompt_tokens", "response_tokens", "max_context_tokens")  # fmt: skip
_LONGEST = 4096 + 256
"""Characters of an error message: the cap, and room for a marker that something was cut."""


def is_agent_loop(payload: Mapping[str, Any]) -> bool:
    """Two generations post to one path; only the first one's completion has messages and capital words."""
    return "final_messages" in payload or payload.get("status") in ("COMPLETED", "ERROR")


def read_callback(dialect: str, channel: str, payload: Mapping[str, Any]) -> Said:
    """What a callback says, however badly it says it."""
    status = str(payload.get("status"))
    if dialect == AGENT_LOOP:
        words = {"COMPLETED": "success", "ERROR": "failure"}
        reward = number(payload.get("reward"))
        reason = str(payload.get("finish_reason") or "")
        message = str(payload.get("error_message") or "")
        return Said(channel, words.get(status, status), reward, message, "", {}, reason)
    samples = {name: number(sample.get("reward")) for name, sample in samples_of(dialect, payload).items()}
    rewards = [value for value in samples.values() if value is not None]
    reward = sum(rewards) / len(rewards) if rewards else None
    message, category = str(payload.get("err_message") or ""), str(payload.get("err_category") or "")
    return Said(channel, status, reward, message, category, samples)


def number(value: Any) -> float | None:
    """A finite JSON number, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def samples_of(dialect: str, payload: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The samples by name; the one of a single-sample callback is called ""."""
    if dialect == MULTI_SAMPLE:
        found = payload.get("samples")
        found = found if isinstance(found, Mapping) else {}
        return {str(name): sample for name, sample in found.items() if isinstance(sample, Mapping)}
    sample = payload.get("sample")
    return {"": sample} if isinstance(sample, Mapping) else {}


def callback_findings(history: History, channel: str, payload: Mapping[str, Any]) -> Iterator[Finding]:
    """What one callback has wrong by itself; order and repetition are the ledger's."""
    if history.dialect == AGENT_LOOP:
        yield from _agent_loop(payload)
    else:
        yield from _rollout(history, channel, payload)
        if channel != COMPLETION:
            yield from _samples(history, payload)
    named = payload.get("rollout_id")
    if named != history.rollout_id and not (named is None and history.wire_id is None):
        yield "id-mismatch", f"the body names {named!r}"


def _agent_loop(payload: Mapping[str, Any]) -> Iterator[Finding]:
    yield from (("missing-field", f"no `{key}` in the completion") for key in _AGENT_LOOP_FIELDS if key not in payload)
    yield from (("null-field", f"`{key}` is null") for key, value in payload.items() if value is None)
    status, reward = payload.get("status"), payload.get("reward")
    if status not in ("COMPLETED", "ERROR"):
        yield "status-word", f"`status` is {status!r}"
    if reward is not None and number(reward) is None:
        yield "reward-not-number", f"`reward` is {reward!r}"
    if status == "ERROR":
        if reward is not None:
            yield "reward-on-failure", f"an ERROR with reward {reward!r}"
        yield from _message(payload.get("error_message"), failed=True)
    messages = payload.get("final_messages")
    if "final_messages" in payload and not _are_messages(messages):
        yield "sample-shape", "`final_messages` is not a list of messages"
    metrics = payload.get("metrics")
    if metrics is not None:
        yield from _metrics(metrics)
        if isinstance(metrics, Mapping) and (absent := [name for name in _METRICS if name not in metrics]):
            yield "missing-field", f"`metrics` has no {', '.join(absent)}"


def _rollout(history: History, channel: str, payload: Mapping[str, Any]) -> Iterator[Finding]:
    yield from (("missing-field", f"no `{key}` in the {channel}") for key in _FIELDS[channel] if key not in payload)
    status = payload.get("status")
    words = ("success", "failure", "cancelled") if channel == COMPLETION else ("success", "failure")
    if status not in words:
        yield "status-word", f"`status` of the {channel} is {status!r}"
    if payload.get("err_category") not in _CATEGORIES:
        yield "category-word", f"`err_category` is {payload.get('err_category')!r}"
    first = history.channels[COMPLETION].first
    # The grade of a rollout whose agent failed has nothing to add to what its completion said.
    told = channel != COMPLETION and first is not None and first.status != "success"
    yield from _message(payload.get("err_message"), failed=status == "failure" and not told)


def _message(text: Any, *, failed: bool) -> Iterator[Finding]:
    if failed and not text:
        yield "silent-failure", "a failure without a word why"
    if isinstance(text, str) and len(text) > _LONGEST:
        yield "message-too-long", f"{len(text):,} characters"


def _samples(history: History, payload: Mapping[str, Any]) -> Iterator[Finding]:
    graded = payload.get("status") == "success"
    samples = samples_of(history.dialect, payload)
    container = "samples" if history.dialect == MULTI_SAMPLE else "sample"
    if container not in payload:
        yield "missing-field", f"no `{container}` in the grader callback"
    for name, sample in samples.items():
        yield from _sample(name, sample, graded)
    if history.dialect == MULTI_SAMPLE:
        yield from _names(history, samples, graded)
    elif graded and not samples:
        yield "sample-missing", "a graded rollout without a sample"


def _sample(name: str, sample: Mapping[str, Any], graded: bool) -> Iterator[Finding]:
    if absent := [key for key in _SAMPLE if key not in sample]:
        yield "sample-shape", f"sample {name!r} has no {', '.join(absent)}"
    if not _are_messages(sample.get("messages")):
        yield "sample-shape", f"`messages` of sample {name!r} is not a list of messages"
    reward, removed = sample.get("reward"), sample.get("remove_sample") is True
    if reward is not None and number(reward) is None:
        yield "reward-not-number", f"`reward` of sample {name!r} is {reward!r}"
    elif reward is not None and (not graded or removed):
        yield "reward-on-failure", f"reward {reward!r} of a {'removed sample' if removed else 'failed grade'}"
    elif reward is None and graded and not removed:
        yield "reward-missing", f"sample {name!r} has no reward"
    yield from _metrics(sample.get("metrics") or {})


def _names(history: History, samples: Mapping[str, Mapping[str, Any]], graded: bool) -> Iterator[Finding]:
    for name, sample in samples.items():
        if sample.get("id") != name:
            yield "sample-key", f"the sample under {name!r} has the id {sample.get('id')!r}"
    asked, reported = set(history.sample_ids), set(samples)
    if not graded and not reported:
        return
    if not asked and reported:
        yield "sample-without-chat", f"reported {sorted(reported)}, and no completion was asked for"
        return
    if unknown := sorted(reported - asked):
        yield "sample-unknown", f"reported {unknown}, the chat calls were of {sorted(asked)}"
    if absent := sorted(asked - reported):
        yield "sample-missing", f"the chat calls were of {sorted(asked)}, and {absent} were not reported"


def _metrics(metrics: Any) -> Iterator[Finding]:
    if not isinstance(metrics, Mapping):
        yield "metric-not-number", f"`metrics` is {shown(repr(metrics))}"
        return
    for name, value in metrics.items():
        if isinstance(value, bool | int | float) and not math.isfinite(value):
            yield "metric-not-number", f"metric {name!r} is {value!r}"


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(message, Mapping) for message in value)
