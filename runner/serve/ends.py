"""How rollouts end that did not come to an end by themselves: each as an outcome, to be told like any other."""

from __future__ import annotations

from dataclasses import replace

from runner.records.failure import Failure
from runner.records.rollout import Outcome
from runner.serve.played import Played

CANCELLED_IN_GRADING = "cancelled_in_grading"
"""The stop reason stored for a rollout whose agent's end was told and whose grade never will be."""


def stopped(played: Played) -> Outcome:
    """Cancelled, or cut off by the end of the server, before it played."""
    reason = played.stop.reason or "cancelled"
    return Outcome(played.request, "cancelled", reason, ended=reason)


def cancelled_after_all(played: Played, outcome: Outcome) -> Outcome:
    """The outcome, unless it was cancelled and some code swallowed that: the controller has been told otherwise.

    What ends in spite of a shutdown, in time, is as good as any.
    """
    if played.stop.reason != "cancelled" or outcome.status == "cancelled":
        return outcome
    return cancelled(outcome)


def cancelled(outcome: Outcome) -> Outcome:
    """The outcome of a rollout that its controller has cancelled, whatever else came of it."""
    return replace(outcome, status="cancelled", stop_reason="cancelled", reward=None, failure=None)


def shut_down(outcome: Outcome) -> Outcome:
    """What the controller is told of a rollout that the end of this process cut short: nobody cancelled it."""
    failure = Failure("workflow", "shutdown", "server shutting down")
    return replace(outcome, status="failed", stop_reason="shutdown", reward=None, failure=failure)


def restarted(played: Played, why: str) -> Outcome:
    """Accepted by an earlier process, and not played again."""
    failure = Failure("workflow", "restarted", why)
    left = played.left or Outcome(played.request, "failed", "restarted")
    return replace(left, status="failed", stop_reason="restarted", failure=failure, ended="restarted")


def broken(played: Played, error: BaseException) -> Outcome:
    """A fault of ours."""
    failure = Failure("workflow", "server_fault", f"a fault of the server itself: {type(error).__name__}: {error}")
    return Outcome(played.request, "failed", "server_fault", failure=failure, ended="server_fault")
