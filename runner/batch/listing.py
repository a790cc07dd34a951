"""One line a rollout: enough to find the one to look at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.batch.figures import OUTCOME_SIGNS, clip, number
from runner.batch.transcript import safe
from runner.diag.style import Style
from runner.records.message import last_answer
from runner.records.rollout import AGENT_ANSWER


def listed(record: Mapping[str, Any], passed: bool) -> dict[str, Any]:
    """What a listing says of a rollout, as JSON."""
    keys = ("row", "row_id", "attempt", "outcome", "stop_reason", "reward")
    scores = {name: score.get("value") for name, score in record["scores"].items()}
    return {**{key: record[key] for key in keys}, "passed": passed, "scores": scores, "failure": record["failure"]}


def listing_line(record: Mapping[str, Any], passed: bool, style: Style) -> str:
    """`✓ q21/0   1.000  final_answer   ... the end of the answer`, in eighty columns."""
    sign = "✓" if passed else "✗" if record["outcome"] == "scored" else OUTCOME_SIGNS[record["outcome"]]
    paint = style.ok if passed else style.warn if record["outcome"] == "ungraded" else style.bad
    failure = record.get("failure")
    words = str(failure["message"]) if failure else _answer(record)
    flat = " ".join(safe(words).split())
    end = flat if len(flat) <= 34 or failure else "…" + flat[-33:]
    name = clip(f"{safe(record['row_id'])}/{record['attempt']}", 16)
    return (
        f"{paint(sign)} {name:<16} {number(record['reward']):>7}  {record['stop_reason']:<17} {clip(end, 34)}".rstrip()
    )


def _answer(record: Mapping[str, Any]) -> str:
    said = (record.get("info") or {}).get(AGENT_ANSWER)
    return said if isinstance(said, str) else last_answer(record.get("messages") or ())
