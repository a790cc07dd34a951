"""What is wrong with the answers that a server gives: to starts, to questions, to cancels. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any

from runner.simulate.callbacks import number
from runner.simulate.decode import Finding, json_object, shown
from runner.simulate.history import History
from runner.simulate.starts import AGENT_LOOP

STATES = ("queued", "running", "grading", "success", "failure", "cancelled", "unknown")
DISPOSITIONS = ("cancelled_queued", "cancelled_running", "not_found")
_SHORTEST, _LONGEST = 0.05, 60.0


def retry_after(text: str | None) -> tuple[float, list[Finding]]:
    """Seconds to wait (0.05 to 60; 1 for what cannot be read), and what is wrong with the header."""
    if text is None:
        return 1.0, [("retry-after-missing", "429 without Retry-After")]
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(text).timestamp() - time.time()
        except (ValueError, TypeError):
            return 1.0, [("retry-after-garbage", f"Retry-After: {shown(text)}")]
    if not seconds <= 3600.0 or seconds < -1.0:
        return min(max(seconds, _SHORTEST), _LONGEST) if seconds == seconds else 1.0, [
            ("retry-after-garbage", f"Retry-After: {shown(text)}")
        ]
    return min(max(seconds, _SHORTEST), _LONGEST), []


def start_findings(
    history: History, status: int, headers: Mapping[str, str], body: bytes, tools: Sequence[Mapping[str, Any]] | None
) -> Iterator[Finding]:
    """What is wrong with the answer to a start. `tools` is what the file offers, None if that is not known."""
    if status == 429:
        if history.dialect == AGENT_LOOP:
            yield "agent-loop-429", f"429: {shown(body)}"
        yield from retry_after(headers.get("retry-after"))[1]
    elif status == 503 and history.dialect == AGENT_LOOP:
        return  # its hard cap
    elif status >= 500:
        yield "start-5xx", f"{status}: {shown(body)}"
    elif status >= 400:
        yield "start-refused", f"{status}: {shown(body)}"
    elif status not in (200, 202) or (status == 200 and history.dialect != "multi-sample"):
        yield "start-status", f"{status} for a {history.dialect} start"
    else:
        yield from _accepted(history, body, tools)


def _accepted(history: History, body: bytes, tools: Sequence[Mapping[str, Any]] | None) -> Iterator[Finding]:
    value, findings = json_object(body)
    if value is None:
        yield "start-body", f"{findings[0][1]}"
        return
    if history.dialect != AGENT_LOOP:
        return
    if value.get("rollout_id") != history.rollout_id:
        yield "start-other-id", f"the answer names {value.get('rollout_id')!r}"
    announced = value.get("tools")
    if not isinstance(announced, list):
        yield "start-body", "`tools` is not a list"
    elif tools is not None:
        yield from _tools(announced, tools)


def _tools(announced: list[Any], offered: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
    def by_name(entries: Sequence[Any]) -> dict[str, Any]:
        functions = [entry.get("function") for entry in entries if isinstance(entry, Mapping)]
        return {str(each.get("name")): each for each in functions if isinstance(each, Mapping)}

    ours, theirs = by_name(offered), by_name(announced)
    if set(ours) != set(theirs):
        yield "tools-differ", f"announced {sorted(theirs)}, the file offers {sorted(ours)}"
        return
    for name, function in ours.items():
        # Written out as empty is as good as left out: other readers of this list do the one or the other.
        if _plain(theirs[name].get("parameters")) != _plain(function.get("parameters")):
            yield "tools-differ", f"the arguments of `{name}` lost something: {shown(str(theirs[name]))}"


def _plain(schema: Any) -> Any:
    if isinstance(schema, Mapping):
        return {key: _plain(value) for key, value in schema.items() if value is not None}
    return [_plain(value) for value in schema] if isinstance(schema, list) else schema


def status_findings(history: History, status: int, body: bytes) -> Iterator[Finding]:
    """What is wrong with the answer to `GET /rollout/{id}/status`, given what was received until now."""
    value, findings = json_object(body)
    if status != 200 or value is None:
        yield "status-shape", f"{status}: {findings[0][1] if findings else shown(body)}"
        return
    if absent := [key for key in ("rollout_id", "status", "reward", "err_message") if key not in value]:
        yield "status-shape", f"no {', '.join(absent)}"
    state = value.get("status")
    if state not in STATES:
        yield "status-shape", f"`status` is {state!r}"
        return
    verdict = history.verdict
    if verdict is None:
        return
    if state not in (verdict.status, "unknown") and not (state == "failure" and verdict.status != "success"):
        yield "status-contradicts", f"its callbacks say {verdict.status}, its status says {state}"
    elif state == "success" and len(verdict.samples) < 2 and number(value.get("reward")) != verdict.reward:
        yield "status-contradicts", f"its callbacks say {verdict.reward}, its status says {value.get('reward')}"


def cancel_findings(ids: Sequence[str] | None, status: int, body: bytes) -> tuple[dict[str, str], list[Finding]]:
    """The dispositions in the answer to a cancel, and what is wrong with it. `ids` is what was asked, if by id."""
    value, _ = json_object(body)
    found = value.get("dispositions") if value is not None else None
    if status != 200 or not isinstance(found, dict):
        return {}, [("cancel-shape", f"{status}: {shown(body)}")]
    findings = [("cancel-shape", f"{name}: {word!r}") for name, word in found.items() if word not in DISPOSITIONS]
    findings += [("cancel-shape", f"no disposition for {name}") for name in ids or () if name not in found]
    return {str(name): str(word) for name, word in found.items()}, findings
