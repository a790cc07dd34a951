"""What stops a run before its rows are done: the budget, and the breaker."""

from __future__ import annotations

from collections.abc import Iterator
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
    """Trips when so many rollouts that began one after the other, of more than one row, failed in the same way.

    In the order of their beginning, not of their end: failures are often quick, so with hundreds in flight the first
    ends are failures even where most rollouts do well. And one row that always fails says nothing of the others.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._begun = 0
        self._running: dict[tuple[str, int], int] = {}
        self._failed: dict[int, tuple[str, str]] = {}

    def begins(self, row_id: str, attempt: int) -> None:
        """Note that a rollout begins."""
        self._running[row_id, attempt] = self._begun
        self._begun += 1

    def add(self, outcome: Outcome) -> str:
        """Note how a rollout ended that `begins` told of; says why the run must stop, or nothing."""
        request, failure = outcome.request, outcome.failure
        place = self._running.pop((request.row_id, request.attempt), None)
        if place is None or outcome.status != "failed" or failure is None or not self._limit:
            return ""
        self._failed[place] = (failure.signature(), request.row_id)
        alike = [*self._alike(place, -1), *self._alike(place, 1), request.row_id]
        if len(alike) < self._limit or len(set(alike)) < 2:
            return ""
        return f"the same failure {len(alike)} times in a row: {failure.boundary}/{failure.kind}: {failure.message}"

    def _alike(self, place: int, step: int) -> Iterator[str]:
        """The rows of the rollouts beside `place`, to one side, that failed as it did."""
        signature, beside = self._failed[place][0], place + step
        while (found := self._failed.get(beside)) is not None and found[0] == signature:
            yield found[1]
            beside += step
