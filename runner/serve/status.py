"""What is known about a rollout, in the words of the wire's status endpoint."""

from __future__ import annotations

from typing import Any

from runner.store.outbox import Known, Verdict


def status_of(rollout_id: str, word: str, reward: float | None = None, message: str | None = None) -> dict[str, Any]:
    """The body: queued, running, grading, success, failure, cancelled or unknown."""
    return {"rollout_id": rollout_id, "status": word, "reward": reward, "err_message": message}


def status_of_known(known: Known) -> dict[str, Any]:
    """The body for what only the state file knows."""
    if known.verdict is not None:
        return settled_status(known, known.verdict)
    if known.cancelled:
        return status_of(known.rollout_id, "cancelled")
    return status_of(known.rollout_id, "grading" if known.phase == "held" else "queued")


def settled_status(known: Known, verdict: Verdict) -> dict[str, Any]:
    """The body for a stored verdict. While callbacks are still owed, `undelivered` says how many."""
    status = status_of(known.rollout_id, verdict.status, verdict.reward, verdict.message or None)
    return {**status, "undelivered": known.undelivered} if known.undelivered else status
