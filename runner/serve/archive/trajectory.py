"""`trajectory_of`: the ATIF document of a rollout, with what is known of its model calls laid on its steps.

A list of calls is laid on the agent's steps only if there are as many; else it is kept beside them, in `extra`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runner.records.completion import ToolSpec
from runner.records.rollout import Outcome
from runner.serve.archive.ack_report import Report, SampleReport
from runner.serve.archive.atif import VERSION, plain, steps_of, usage_metrics
from runner.serve.start import Start

_SUMS = {
    "total_prompt_tokens": "prompt_tokens",
    "total_completion_tokens": "completion_tokens",
    "total_cached_tokens": "cached_tokens",
    "total_cost_usd": "cost_usd",
}


def trajectory_of(
    agent: Mapping[str, str], start: Start, outcome: Outcome, tools: Sequence[ToolSpec], reports: Sequence[Report]
) -> dict[str, Any] | None:
    """The document, or None if nothing was said. `agent` is name and version; the last report counts, as a whole."""
    if not outcome.sample.messages:
        return None
    steps = steps_of(outcome.sample.messages)
    extra = _extra(start, outcome)
    played = [step for step in steps[_steps_before(outcome) :] if step["source"] == "agent"]
    own = [_own(call) for call in outcome.sample.calls if "error" not in call]
    laid = _lay(played, own)
    report = reports[-1] if reports else None
    entry = _only(report, extra)
    if (
        entry is not None
        and entry.calls
        and not _lay([step for step in steps if step["source"] == "agent"], entry.calls)
    ):
        extra["unmatched_llm_call_metrics"] = plain(entry.calls)
    elif own and not laid and (entry is None or not entry.calls):
        extra["unmatched_llm_call_metrics"] = plain(own)
    document: dict[str, Any] = {
        "schema_version": VERSION,
        "session_id": start.rollout_id,
        "trajectory_id": start.rollout_id,
        "agent": dict(agent),
        "steps": steps,
        "final_metrics": _final(steps, entry),
        "extra": {"osmosis": extra},
    }
    model = next((name for name in (entry and entry.model, report and report.model, start.chat.model) if name), None)
    if model is not None:
        document["agent"]["model_name"] = model
    if tools:
        document["agent"]["tool_definitions"] = [plain(spec.wire()) for spec in tools]
    return document


def _extra(start: Start, outcome: Outcome) -> dict[str, Any]:
    found = {
        "rollout_id": start.rollout_id,
        "label": start.label,
        "reward": outcome.reward,
        "status": outcome.status,
        "stop_reason": outcome.stop_reason,
        "sample_metrics": plain(outcome.sample.metrics),
        "sample_extra_fields": plain(outcome.sample.info),
        "request_metadata": plain(start.metadata),
        "request_extra_fields": plain(start.extra),
    }
    return {name: value for name, value in found.items() if value not in (None, {}, "")}


def _steps_before(outcome: Outcome) -> int:
    """How many steps the conversation began with, if it still begins with the prompt: no call made those."""
    prompt = outcome.request.prompt
    if outcome.sample.messages[: len(prompt)] != tuple(prompt):
        return 0
    return len(steps_of(prompt))


def _only(report: Report | None, extra: dict[str, Any]) -> SampleReport | None:
    """The one sample that a report tells of, whatever its name; several are kept in `extra`, for nobody knows which."""
    if report is None or not report.samples:
        return None
    if len(report.samples) == 1:
        return next(iter(report.samples.values()))
    extra["unmatched_sample_reports"] = {
        key: plain(
            {"model_name": entry.model, "llm_call_metrics": list(entry.calls), "final_metrics": dict(entry.final)}
        )
        for key, entry in report.samples.items()
    }
    return None


def _lay(steps: Sequence[dict[str, Any]], calls: Sequence[Mapping[str, Any]]) -> bool:
    """Put each call on its step, if there are as many; True if so."""
    if len(steps) != len(calls):
        return False
    for step, call in zip(steps, calls, strict=True):
        metrics = {name: value for name, value in call.items() if name not in ("model_name", "reasoning_content")}
        if metrics:
            step["metrics"] = metrics
        step["llm_call_count"] = 1
        for name in ("model_name", "reasoning_content"):
            if call.get(name) and (name == "model_name" or not step.get(name)):
                step[name] = call[name]
    return True


def _own(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call as our recorder kept it, by ATIF's names."""
    metrics = usage_metrics(call.get("usage"))
    for name, ours in (
        ("cost_usd", "cost"),
        ("prompt_token_ids", "prompt_token_ids"),
        ("completion_token_ids", "token_ids"),
    ):
        if call.get(ours) is not None:
            metrics[name] = plain(call[ours])
    numbers = _logprobs(call.get("logprobs"))
    if numbers is not None:
        metrics["logprobs"] = numbers
    elif call.get("logprobs") is not None:
        metrics["extra"] = {"logprobs": plain(call["logprobs"])}
    for name, ours in (("model_name", "model"), ("reasoning_content", "reasoning")):
        if isinstance(call.get(ours), str):
            metrics[name] = call[ours]
    return metrics


def _logprobs(given: Any) -> list[float] | None:
    """One number a token, from a plain list or from the OpenAI form."""
    content = given.get("content") if isinstance(given, Mapping) else given
    if not isinstance(content, Sequence) or isinstance(content, str):
        return None
    found: list[Any] = [one.get("logprob") if isinstance(one, Mapping) else one for one in content]
    good = all(isinstance(one, int | float) and not isinstance(one, bool) and plain(one) == one for one in found)
    return found if good else None


def _final(steps: Sequence[Mapping[str, Any]], entry: SampleReport | None) -> dict[str, Any]:
    final: dict[str, Any] = {}
    for total, name in _SUMS.items():
        values = [step["metrics"][name] for step in steps if name in step.get("metrics", ())]
        if values:
            final[total] = sum(values)
    if entry is not None and entry.final:
        final = dict(entry.final)
    return {**final, "total_steps": len(steps)}
