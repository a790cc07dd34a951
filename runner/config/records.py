"""The schemas of what a run leaves: a line of the journal and the summary. Readers must allow keys beside these."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

from runner.records.completion import Usage
from runner.records.failure import Boundary
from runner.records.rollout import SCHEMA, STATUSES

_NUMBER_OR_NULL: dict[str, Any] = {"type": ["number", "null"]}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}


def _table(properties: dict[str, Any], *required: str, description: str = "") -> dict[str, Any]:
    table: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        table["required"] = list(required)
    return {"description": description, **table} if description else table


def _usage() -> dict[str, Any]:
    properties = {one.name: _COUNT for one in fields(Usage)}
    return _table(properties, "input_tokens", "output_tokens", description="Tokens, as the endpoint counted them.")


def _failure() -> dict[str, Any]:
    text = {"type": "string"}
    properties = {"boundary": {"enum": list(get_args(Boundary))}, "kind": text, "message": text}
    optional = {"where": text, "detail": text}
    return _table({**properties, **optional}, *properties, description="Why it went wrong, and at which boundary.")


def _score() -> dict[str, Any]:
    properties = {
        "value": _NUMBER_OR_NULL | {"description": "The score; null when the grader could not speak."},
        "reason": {"type": "string"},
        "failure": {"$ref": "#/$defs/failure"},
        "details": {"type": "object"},
        "seconds": {"type": "number", "minimum": 0},
        "removed": {"const": True, "description": "The grader said that the sample is not to be counted."},
    }
    return _table(properties, "value", "reason", description="What one grader said.")


def rollout_schema() -> dict[str, Any]:
    """One line of `rollouts.jsonl`."""
    properties: dict[str, Any] = {
        "schema": {"const": SCHEMA, "description": "The version of this record."},
        "rollout_id": {"type": "string", "minLength": 1},
        "row": _COUNT | {"description": "The row's place in the dataset, from 0."},
        "row_id": {"type": "string"},
        "attempt": _COUNT | {"description": "From 0."},
        "outcome": {"enum": list(STATUSES)},
        "stop_reason": {"type": "string"},
        "reward": _NUMBER_OR_NULL | {"description": "A number exactly when the outcome is `scored`."},
        "scores": {"type": "object", "additionalProperties": _score(), "description": "By grader."},
        "failure": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/failure"}]},
        "messages": {
            "type": "array",
            "items": {"type": "object", "required": ["role"]},
            "description": "The conversation in OpenAI form, with the system prompt.",
        },
        "calls": {
            "type": "array",
            "items": {"type": "object"},
            "description": "Each model call: latency, usage, finish_reason, retries, token ids and log-probabilities "
            "exactly as the endpoint gave them.",
        },
        "usage": _usage(),
        "cost": _NUMBER_OR_NULL | {"description": "USD; null when no price is known."},
        "timing": {"type": "object", "additionalProperties": {"type": "number"}, "description": "Seconds."},
        "digests": _table(
            {"result": {"type": "string"}, "grade": {"type": "string"}},
            "result",
            "grade",
            description="What the config came to that this rollout was played and graded under.",
        ),
    }
    scored = {"properties": {"outcome": {"const": "scored"}}}
    number, null = {"properties": {"reward": {"type": "number"}}}, {"properties": {"reward": {"type": "null"}}}
    return {
        "title": "osmosis-run rollout",
        **_table(properties, *properties, description="One finished rollout: a line of the journal of a run."),
        "if": scored,
        "then": number,
        "else": null,
        "$defs": {"failure": _failure()},
    }


def _interval(key: str, *more: str) -> dict[str, Any]:
    """A number with its 95 % interval; all null when nothing was counted."""
    names = (key, "low", "high")
    counts = dict.fromkeys(more, _COUNT)
    return _table({**dict.fromkeys(names, _NUMBER_OR_NULL), **counts}, *names, *more)


def summary_schema() -> dict[str, Any]:
    """`summary.json`."""
    properties: dict[str, Any] = {
        "schema": {"const": "summary/1", "description": "The version of this record."},
        "rows": _COUNT,
        "attempts": _COUNT | {"description": "Attempts of each row."},
        "outcomes": {
            "type": "object",
            "propertyNames": {"enum": list(STATUSES)},
            "additionalProperties": _COUNT,
            "description": "How many rollouts ended how.",
        },
        "reward": _interval("mean", "n") | {"description": "Mean reward over `n` scored rollouts."},
        "pass_at": {
            "type": "object",
            "propertyNames": {"pattern": "^[1-9][0-9]*$"},
            "additionalProperties": _interval("value"),
            "description": "By k.",
        },
        "graders": {"type": "object", "additionalProperties": {"type": "object"}, "description": "By grader."},
        "usage": _usage(),
        "cost": _NUMBER_OR_NULL | {"description": "USD; null when no price is known."},
        "wall_seconds": {"type": "number", "minimum": 0},
    }
    description = "What a run came to. Intervals are 95 %, clustered by row."
    return {"title": "osmosis-run summary", **_table(properties, *properties, description=description)}
