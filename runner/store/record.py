"""An `Outcome` as a line of the journal, and back.

What JSON cannot hold (half a surrogate pair, NaN, an object of the user's) is replaced, and `"repaired": true` says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from runner.records.completion import Usage
from runner.records.failure import Failure
from runner.records.message import Message
from runner.records.rollout import SCHEMA, Outcome, RolloutRequest, Sample, ScoreRecord

_MAX_DEPTH = 200


def to_record(outcome: Outcome, digests: Mapping[str, str]) -> dict[str, Any]:
    """The record of `outcome`; `digests` says what it was made with (`result`, `grade`, ...).

    `prompt_messages` counts the messages it started from; if the workflow rewrote those, they are kept in `prompt`.
    """
    request, sample = outcome.request, outcome.sample
    prompt = list(request.prompt)
    messages = list(sample.messages)
    starts_with_prompt = messages[: len(prompt)] == prompt
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "rollout_id": request.rollout_id,
        "row": request.row_index,
        "row_id": request.row_id,
        "attempt": request.attempt,
        "label": request.label,
        "outcome": outcome.status,
        "stop_reason": outcome.stop_reason,
        "reward": outcome.reward,
        "scores": {name: score.to_json() for name, score in outcome.scores.items()},
        "failure": None if outcome.failure is None else outcome.failure.to_json(),
        "usage": usage_to_json(outcome.usage),
        "cost": outcome.cost,
        "timing": dict(outcome.timing),
        "metrics": dict(sample.metrics),
        "digests": dict(digests),
        "prompt_messages": len(prompt) if starts_with_prompt else 0,
        "messages": messages,
        "calls": [dict(call) for call in sample.calls],
        "tools": [dict(span) for span in sample.tool_spans],
    }
    if not starts_with_prompt:
        record["prompt"] = prompt
    for name, more in (("info", sample.info), ("sampling", request.sampling), ("limits", request.limits)):
        if more:
            record[name] = dict(more)
    return record


def from_record(record: Mapping[str, Any], row: Mapping[str, Any] | None = None) -> Outcome:
    """The outcome a record holds. A record does not repeat the dataset's row: `row` is put into the request."""
    messages: tuple[Message, ...] = tuple(record["messages"])
    prompt = tuple(record["prompt"]) if "prompt" in record else messages[: record["prompt_messages"]]
    request = RolloutRequest(
        rollout_id=record["rollout_id"],
        prompt=prompt,
        row=row or {},
        row_index=record["row"],
        row_id=record["row_id"],
        attempt=record["attempt"],
        label=record["label"],
        sampling=record.get("sampling", {}),
        limits=record.get("limits", {}),
    )
    return Outcome(
        request=request,
        status=record["outcome"],
        stop_reason=record["stop_reason"],
        reward=record["reward"],
        scores={name: _score(score) for name, score in record["scores"].items()},
        failure=_failure(record["failure"]),
        sample=_sample(record, messages),
        usage=usage_from_json(record["usage"]),
        cost=record["cost"],
        timing=record["timing"],
    )


def _sample(record: Mapping[str, Any], messages: tuple[Message, ...]) -> Sample:
    calls, spans = tuple(record["calls"]), tuple(record["tools"])
    return Sample(messages, calls, spans, record["metrics"], record.get("info", {}))


def usage_to_json(usage: Usage) -> dict[str, int]:
    """Tokens by name, the total included."""
    return {
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cached_tokens": usage.cached_tokens,
    }


def usage_from_json(usage: Mapping[str, int]) -> Usage:
    return Usage(
        usage["input_tokens"], usage["output_tokens"], usage.get("reasoning_tokens", 0), usage.get("cached_tokens", 0)
    )


def _score(score: Mapping[str, Any]) -> ScoreRecord:
    return ScoreRecord(
        value=score["value"],
        reason=score.get("reason", ""),
        failure=_failure(score.get("failure")),
        details=score.get("details", {}),
        seconds=score.get("seconds", 0.0),
        removed=score.get("removed", False),
    )


def _failure(failure: Mapping[str, Any] | None) -> Failure | None:
    return None if failure is None else Failure(**failure)


def encode(record: Mapping[str, Any]) -> bytes:
    """One line of JSON with its line end. Never raises for what a record holds: it is repaired, and says so."""
    from pydantic_core import to_json

    try:
        line = to_json(record)
        # NaN and infinities come out as words that are no JSON; the words may also stand in a text, hence the walk.
        if b"NaN" not in line and b"Infinity" not in line:
            return line + b"\n"
    except (ValueError, TypeError, RecursionError):  # surrogates, cycles, unknown types: mended below
        pass
    mender = _Mender()
    mended = mender.mend(dict(record))
    if mender.repaired:
        mended["repaired"] = True
    return to_json(mended) + b"\n"


def is_repaired(line: bytes) -> bool:
    """Whether `encode` had to change what the line holds."""
    return line.endswith(b',"repaired":true}\n')


class _Mender:
    """Copies a value into what JSON can hold, and remembers whether anything was lost."""

    def __init__(self) -> None:
        self.repaired = False

    def mend(self, value: Any, depth: int = 0) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if value is None or isinstance(value, bool | int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else self._lost(None)
        if depth >= _MAX_DEPTH:
            return self._lost("… (nested too deeply)")
        if isinstance(value, Mapping):
            return {self._key(key): self.mend(inner, depth + 1) for key, inner in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
            return [self.mend(inner, depth + 1) for inner in value]
        return self._lost(self._text(_spoken(value)))

    def _key(self, key: Any) -> str:
        return self._text(key) if isinstance(key, str) else self._lost(self._text(_spoken(key)))

    def _text(self, text: str) -> str:
        try:
            text.encode()
        except UnicodeEncodeError:
            return str(self._lost(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")))
        return text

    def _lost(self, instead: Any) -> Any:
        self.repaired = True
        return instead


def _spoken(value: Any) -> str:
    try:
        return repr(value)[:10_000]
    except Exception as error:  # the user's own __repr__
        return f"<{type(value).__name__}: its repr raised {type(error).__name__}>"
