"""Outcomes to journal lines and back, with what a batch run adds: digests, groups, how the agent itself ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from runner.batch.tally import group_values
from runner.datasets.dataset import Row
from runner.records.failure import Failure
from runner.records.rollout import Outcome, RolloutRequest
from runner.store.record import from_record, to_record


def line_of(outcome: Outcome, digests: Mapping[str, str], row: Row, group_by: Sequence[str]) -> dict[str, Any]:
    """The journal line of an outcome. `groups` holds the row's values of the `group_by` columns."""
    record = to_record(outcome, digests)
    if outcome.ended and outcome.ended != outcome.stop_reason:
        record["ended"] = outcome.ended
    if group_by:
        record["groups"] = group_values(row.data, group_by)
    return record


def outcome_of(record: Mapping[str, Any], row: Mapping[str, Any] | None = None, label: Any = ...) -> Outcome:
    """The outcome of a journal line, with the dataset's row, and another label if one is given."""
    outcome = from_record(record, row)
    if "ended" in record:
        outcome = replace(outcome, ended=record["ended"])
    return outcome if label is ... else replace(outcome, request=replace(outcome.request, label=label))


def regraded(outcome: Outcome, before: Mapping[str, Any]) -> dict[str, Any]:
    """What marks a line that was graded again: what its judges cost; the rollout itself was paid in its first line."""
    cost = None if outcome.cost is None else outcome.cost - (before["cost"] or 0.0)
    return {"cost": cost}


def ungradable(outcome: Outcome, why: str) -> Outcome:
    """A rollout whose label cannot be made from its row any more."""
    failure = Failure("config", "bad_row", why)
    return replace(outcome, status="ungraded", stop_reason="bad_row", reward=None, scores={}, failure=failure)


def unplayable(row: Row, attempt: int, rollout_id: str, why: str) -> Outcome:
    """A rollout that never began, because its prompt cannot be made from the row."""
    request = RolloutRequest(rollout_id, (), row.data, row.index, row.id, attempt)
    return Outcome(request, "failed", "config", failure=Failure("config", "bad_row", why))
