"""What stops a run before its rows are done: the budget, and the breaker."""

from __future__ import annotations

from dataclasses import dataclass

from runner.batch.figures import money
from runner.records.rollout import Outcome


@dataclass(frozen=True, slots=True)
class Limits:
    """`[eval] budget` and `breaker`. `cost` is USD, `time` seconds; None is no limit, a `breaker` of 0 never trips."""

    cost: float | None = None
    tokens: int | None = None
    time: float | None = None
    breaker: int = 0


class Spending:
    """What the run has spent, and whether one more rollout may start.

    Asked before each rollout: what is running is expected to cost what the average one did, so that the budget is
    met by the run and not passed by everything in flight.
    """

    def __init__(self, limits: Limits, cost: float = 0.0, tokens: int = 0) -> None:
        self._limits = limits
        self.cost = cost
        self.tokens = tokens
        self._ended = 0
        self._cost_here = 0.0
        self._tokens_here = 0

    def add(self, outcome: Outcome) -> None:
        """Count what a rollout has spent."""
        self._ended += 1
        self._cost_here += outcome.cost or 0.0
        self._tokens_here += outcome.usage.total_tokens
        self.cost += outcome.cost or 0.0
        self.tokens += outcome.usage.total_tokens

    def refuses(self, running: int) -> str:
        """Why no rollout may start beside `running` others; empty if it may."""
        per_rollout = 1 / self._ended if self._ended else 0.0
        limits = self._limits
        cost = self.cost + running * self._cost_here * per_rollout
        if limits.cost is not None and cost >= limits.cost:
            return f"the budget of {money(limits.cost)} is used up ({money(self.cost)} spent)"
        tokens = self.tokens + running * self._tokens_here * per_rollout
        if limits.tokens is not None and tokens >= limits.tokens:
            return f"the budget of {limits.tokens:,} tokens is used up ({self.tokens:,} spent)"
        return ""


class Breaker:
    """Trips when the same failure ends so many rollouts in a row, across the run."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._signature = ""
        self._count = 0

    def add(self, outcome: Outcome) -> str:
        """Note how a rollout ended; says why the run must stop, or nothing."""
        if outcome.status == "cancelled":
            return ""
        if outcome.status != "failed" or outcome.failure is None:
            self._signature, self._count = "", 0
            return ""
        signature = outcome.failure.signature()
        self._count = self._count + 1 if signature == self._signature else 1
        self._signature = signature
        if not self._limit or self._count < self._limit:
            return ""
        failure = outcome.failure
        return f"the same failure {self._count} times in a row: {failure.boundary}/{failure.kind}: {failure.message}"
