"""`report_of`: what a controller says about its model calls in the body of an acknowledgement.

The model is the controller's, so it may know token ids and log-probabilities that never went over the wire.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runner.records.atif_rules import check
from runner.serve.delivery.reading import MAX_ACK

_CALL = (
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "cost_usd",
    "prompt_token_ids",
    "completion_token_ids",
    "logprobs",
    "extra",
)
_FINAL = ("total_prompt_tokens", "total_completion_tokens", "total_cached_tokens", "total_cost_usd", "extra")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SampleReport:
    """One sample's calls in order, as ATIF metrics, each perhaps with a `model_name`; `final` is their totals."""

    model: str | None
    calls: tuple[Mapping[str, Any], ...]
    final: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Report:
    """The `trajectory` object of an acknowledgement; `samples` by the controller's names for them."""

    model: str | None
    samples: Mapping[str, SampleReport]


def report_of(ack_body: bytes) -> Report | None:
    """The report in an acknowledgement, or None if it holds none, or one that is malformed (which is logged)."""
    if len(ack_body) > MAX_ACK or b'"trajectory"' not in ack_body:
        return None
    try:
        body = json.loads(ack_body)
        found = body.get("trajectory") if isinstance(body, Mapping) else None
        return None if found is None else _report(found)
    except (ValueError, RecursionError, OverflowError) as error:
        log.warning("the report in an acknowledgement is not used: %s", error)
        return None


def _report(found: Any) -> Report:
    samples = _object(found, "trajectory").get("samples")
    entries = _object({} if samples is None else samples, "samples")
    return Report(_name(found), {str(key): _sample(_object(entry, key)) for key, entry in entries.items()})


def _sample(entry: Mapping[str, Any]) -> SampleReport:
    calls = entry.get("llm_call_metrics")
    if not isinstance(calls, list | None):
        raise ValueError("llm_call_metrics is not a list")
    final = _known(_object(entry.get("final_metrics") or {}, "final_metrics"), _FINAL)
    kept = []
    for call in calls or ():
        metrics = _known(_object(call, "a call"), _CALL)
        _approve({"metrics": metrics})
        model = _name(call)
        kept.append(metrics if model is None else {**metrics, "model_name": model})
    _approve({}, final)
    return SampleReport(_name(entry), tuple(kept), final)


def _approve(step: Mapping[str, Any], final: Mapping[str, Any] | None = None) -> None:
    """Raise ValueError unless these would pass in a document."""
    document: dict[str, Any] = {
        "schema_version": "ATIF-v1.7",
        "agent": {"name": "", "version": ""},
        "steps": [{"step_id": 1, "source": "agent", "message": "", **step}],
    }
    if final is not None:
        document["final_metrics"] = final
    wrong = check(document)
    if wrong:
        raise ValueError(wrong[0])


def _known(record: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: record[name] for name in names if record.get(name) is not None}


def _object(value: Any, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is not an object")
    return value


def _name(record: Mapping[str, Any]) -> str | None:
    name = record.get("model_name")
    if not isinstance(name, str | None):
        raise ValueError("model_name is not text")
    return name
