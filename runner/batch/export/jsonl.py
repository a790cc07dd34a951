"""`jsonl`: the rollout itself, without timings: messages as they went over the wire, reward, scores, tools."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from runner.batch.export.row import Tools


def row(record: Mapping[str, Any], tools: Tools) -> dict[str, Any]:
    """`{row, row_id, attempt, reward, scores, stop_reason, label, messages, tools}`."""
    return {
        "row": record["row"],
        "row_id": record["row_id"],
        "attempt": record["attempt"],
        "reward": record["reward"],
        "scores": {name: score.get("value") for name, score in sorted((record.get("scores") or {}).items())},
        "stop_reason": record["stop_reason"],
        "label": record.get("label"),
        "messages": record["messages"],
        "tools": [dict(tool) for tool in tools],
    }
