"""`trajectory_of`: a rollout of ours, an outcome or a line of `rollouts.jsonl`, as a trajectory.

A view: nothing is measured or decided here. The conversation is taken apart into steps; the calls that a model wrote
into its text stand in the record's `tools`, with the turn that they are of.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from runner.agentic.steps import Steps
from runner.agentic.told import contents_of
from runner.agentic.trajectory import Trajectory
from runner.records.limits import LIMIT_REASONS
from runner.records.message import Message, ToolCall, text_of, tool_calls_of
from runner.records.rollout import AGENT_ANSWER, AGENT_REWARD, Outcome
from runner.store.record import to_record

OWN = "trajectory"
"""The key of a record's `info` under which an agent's own trajectory is kept."""

_OURS = (OWN, AGENT_ANSWER, AGENT_REWARD)

_ENDED_SHORT = LIMIT_REASONS | {"content_filter", "empty_answer", "max_attempts", "stopped"}


def trajectory_of(rollout: Outcome | Mapping[str, Any]) -> Trajectory:
    """The trajectory of an outcome, or of a record of it. One that the agent itself kept is taken as it is."""
    record = to_record(rollout, {}) if isinstance(rollout, Outcome) else rollout
    info = record.get("info") or {}
    if isinstance(info.get(OWN), Mapping):
        return settled(Trajectory.from_dict(info[OWN]), record)
    trajectory = Trajectory(str(record["rollout_id"]))
    steps = Steps(trajectory)
    _tell(steps, record)
    steps.end(answer_of(record), finished=is_finished(record), marked=AGENT_ANSWER in info)
    return settled(trajectory, record)


def trajectories_in(path: Path) -> Iterator[Trajectory]:
    """Those of a run's journal, its `rollouts.jsonl`. Raises `StoreError`."""
    from runner.store.journal_reading import read

    for _, record in read(path):
        yield trajectory_of(record)


def is_finished(record: Mapping[str, Any]) -> bool:
    """Whether the agent came to its end by itself: no failure of its own, no limit."""
    if record["outcome"] not in ("scored", "ungraded"):
        return False
    if record["outcome"] == "ungraded" and record.get("failure"):
        # The stop reason is that of the grading: what the agent did, its last message says.
        messages = record.get("messages") or [{}]
        return messages[-1].get("role") == "assistant" and not messages[-1].get("tool_calls")
    return record["stop_reason"] not in _ENDED_SHORT


def answer_of(record: Mapping[str, Any]) -> str | None:
    """What the agent answered: by its own word, or else in its last message."""
    marked = (record.get("info") or {}).get(AGENT_ANSWER)
    if isinstance(marked, str):
        return marked
    messages = record.get("messages") or []
    return text_of(messages[-1]) if messages and messages[-1].get("role") == "assistant" else None


def settled(trajectory: Trajectory, record: Mapping[str, Any]) -> Trajectory:
    """The same with what is known of a rollout that has ended: how, at what cost, and with which reward."""
    usage = record.get("usage") or {}
    facts = {
        "status": record["outcome"],
        "stop_reason": record["stop_reason"],
        "failure": record.get("failure"),
        "usage": dict(usage),
        "cost": record.get("cost"),
        "timing": dict(record.get("timing") or {}),
        "turns": int((record.get("metrics") or {}).get("turns", 0)),
        "metrics": dict(record.get("metrics") or {}),
    }
    for key in ("row_id", "attempt", "label", "scores"):
        if record.get(key):
            facts[key] = record[key]
    if other := {key: value for key, value in (record.get("info") or {}).items() if key not in _OURS}:
        facts["info"] = other
    models = [call["model"] for call in record.get("calls") or () if call.get("model")]
    if models:
        facts["model"] = models[-1]
    trajectory.metadata |= facts
    first = (record.get("messages") or [{}])[0]
    if trajectory.system_prompt is None and first.get("role") == "system":
        trajectory.system_prompt = text_of(first)
    trajectory.is_completed = is_finished(record)
    trajectory.total_tokens = int(usage.get("total_tokens", 0))
    if record.get("reward") is not None:
        trajectory.final_reward = float(record["reward"])
    return trajectory


def _tell(steps: Steps, record: Mapping[str, Any]) -> None:
    messages: Sequence[Message] = record.get("messages") or ()
    answered = [call for call in record.get("calls") or () if "error" not in call]
    written = _written(record.get("tools") or ())
    spans = {span.get("tool_call_id"): span for span in record.get("tools") or ()}
    # A prompt may hold messages of the model too: the calls belong to the last ones.
    place = len(answered) - sum(message.get("role") == "assistant" for message in messages)
    open_calls: list[ToolCall] = []
    for message in messages:
        role = message.get("role")
        if role == "assistant":
            call = answered[place] if 0 <= place < len(answered) else {}
            place += 1
            steps.said(message, call)
            open_calls = tool_calls_of(message) or written.pop(call.get("turn"), [])
            if open_calls:
                steps.called(open_calls)
        elif role == "tool":
            calls = [each for each in open_calls if each.id == message.get("tool_call_id")][:1]
            call_of = calls or [ToolCall(str(message.get("tool_call_id") or ""), str(message.get("name") or ""), "{}")]
            steps.answered(call_of, [text_of(message)], [_status(spans, call_of[0])], [message])
        elif open_calls and open_calls[0].as_text:
            contents = contents_of(text_of(message), open_calls)
            steps.answered(open_calls, contents, [_status(spans, each) for each in open_calls], [message])
            open_calls = []
        else:
            steps.observed(message)


def _written(spans: Sequence[Mapping[str, Any]]) -> dict[Any, list[ToolCall]]:
    """The calls that were written as text, by their turns."""
    found: dict[Any, list[ToolCall]] = {}
    for span in spans:
        if "arguments" in span:
            call = ToolCall(str(span.get("tool_call_id") or ""), str(span.get("name") or ""), span["arguments"], True)
            found.setdefault(span.get("turn"), []).append(call)
    return found


def _status(spans: Mapping[Any, Mapping[str, Any]], call: ToolCall) -> str:
    return str((spans.get(call.id) or {}).get("status") or "")
