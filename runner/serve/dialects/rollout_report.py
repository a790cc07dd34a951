"""The two callbacks of `POST /rollout`: how the agent ended, and what the graders made of it.

A reward is said only of a rollout that was scored. Everything else that a grade can come to is a failure with a word
why, except a sample that ran into a limit and is to stay ungraded: it is reported as removed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from runner.records.quick import quick
from runner.records.rollout import Outcome
from runner.serve.dialects.category import AGENT, VALIDATION, category_of, error_text, failure_text
from runner.serve.dialects.dialect import CANCELLED, FAILURE, SUCCESS
from runner.serve.dialects.encode import strict
from runner.serve.dialects.sample import Parts
from runner.serve.start import Start
from runner.store.outbox import Owed

_NO_GRADER = "no grader configured: add `[graders.NAME]` to the file, or let the agent return a `reward`"


@quick
class Told:
    """What a grader callback says. `listed` is whether it holds the sample; a message is None exactly for success."""

    status: str
    reward: float | None = None
    listed: bool = True
    removed: bool = False
    message: str | None = None
    category: str | None = None


def ended_well(outcome: Outcome) -> bool:
    """Whether the agent did its part, whatever became of the grade."""
    return outcome.status in ("scored", "ungraded")


def completion(start: Start, left: Outcome, secrets: Sequence[str], *, status_first: bool) -> Owed:
    """The completion callback."""
    fine = ended_well(left)
    status, named = ("status", SUCCESS if fine else FAILURE), ("rollout_id", start.wire_id)
    body: dict[str, Any] = {
        **dict([status, named] if status_first else [named, status]),
        "extra_fields": None,
        "err_message": None if fine else error_text(failure_text(start, left), start, secrets),
        "err_category": None if fine else failed_category(left),
    }
    return Owed("completion", start.completion_url, strict(body), start.callback_key)


def failed_category(outcome: Outcome) -> str:
    """The category of an outcome that is no result."""
    return AGENT if outcome.failure is None else category_of(outcome.failure)


def finite_reward(outcome: Outcome) -> float | None:
    """The reward of a scored rollout as a plain finite number; None for any other outcome."""
    reward: Any = outcome.reward if outcome.status == "scored" else None
    if reward is None or isinstance(reward, str | bytes):
        return None
    try:
        number = float(reward)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def said(start: Start, outcome: Outcome, verdict: Told, secrets: Sequence[str]) -> tuple[str, str | None]:
    """The status endpoint's word and message: what the last callback of the rollout says."""
    if outcome.status == "cancelled":
        return CANCELLED, CANCELLED
    if start.grader_url is not None:
        return verdict.status, verdict.message
    if ended_well(outcome):
        return SUCCESS, None
    return FAILURE, error_text(failure_text(start, outcome), start, secrets)


def told(start: Start, outcome: Outcome, secrets: Sequence[str]) -> Told:
    """What the grader callback of an outcome says."""
    if not ended_well(outcome):
        text = error_text(failure_text(start, outcome), start, secrets)
        return Told(FAILURE, listed=False, message=text, category=failed_category(outcome))
    if outcome.failure is not None and outcome.failure.kind == "no_grader" and not outcome.scores:
        return Told(FAILURE, listed=False, message=_NO_GRADER)
    reward = finite_reward(outcome)
    if reward is not None:
        return Told(SUCCESS, reward)
    if outcome.status == "ungraded" and outcome.failure is None:
        return Told(SUCCESS, removed=True)
    return _without_reward(start, outcome, secrets)


def _without_reward(start: Start, outcome: Outcome, secrets: Sequence[str]) -> Told:
    failure = outcome.failure
    if failure is None:
        return Told(FAILURE, message="Sample has no reward after grading", category=VALIDATION)
    silent = "Sample has no reward after grading: " if failure.kind == "grader_silent" else ""
    text = error_text(silent + failure_text(start, outcome), start, secrets)
    return Told(FAILURE, message=text, category=category_of(failure))


def sample_body(parts: Parts, label: str | None, verdict: Told) -> dict[str, Any]:
    """The sample as the third generation has it; the second one's has an `id` before."""
    return {
        "messages": parts.messages,
        "label": label,
        "reward": verdict.reward,
        "remove_sample": verdict.removed,
        "metrics": parts.metrics,
        "extra_fields": parts.extra,
    }
