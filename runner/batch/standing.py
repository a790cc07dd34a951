"""How a run stands while it runs: what a progress display shows, kept in a few bytes a row in flight."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Protocol

from runner.batch.plan import RunPlan
from runner.batch.statistics import UNIT, Bounds, ClusterSums, Estimate
from runner.records.rollout import Outcome, Status

_DISTINCT = 3


class Standing:
    """Counts, running mean and spending. A row's sums are forgotten when all of its attempts are in."""

    def __init__(self, plan: RunPlan, bounds: Bounds | None = None) -> None:
        self.plan = plan
        self.outcomes: Counter[str] = Counter()
        self.reused = 0
        self.played = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.cost: float | None = None
        self.started = time.monotonic()
        self.failures: dict[str, int] = {}
        """The latest distinct failures: text -> how often, newest last."""
        self.running: Callable[[], int] = lambda: 0
        self._bounds = bounds
        self._inside = True
        """Whether every reward so far lies between 0 and 1."""
        self._sums = ClusterSums()
        self._open: dict[str, list[float]] = {}

    @property
    def done(self) -> int:
        return sum(self.outcomes.values())

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    @property
    def reward(self) -> Estimate:
        return self._sums.estimate(self._bounds or (UNIT if self._inside else None))

    @property
    def rate(self) -> float:
        """Rollouts a second in this command."""
        return self.played / self.seconds if self.seconds > 0 else 0.0

    @property
    def left(self) -> float | None:
        """Seconds to the end at this rate, or None while nothing is known."""
        missing = self.plan.total - self.done
        return missing / self.rate if self.rate > 0 else None

    def reuse(self, row_id: str, status: Status, reward: float | None) -> None:
        """Count what an earlier command had finished."""
        self.reused += 1
        self._count(row_id, status, reward)

    def add(self, outcome: Outcome) -> None:
        """Count a rollout of this command; it is on disk."""
        self.played += 1
        self.input_tokens += outcome.usage.input_tokens
        self.output_tokens += outcome.usage.output_tokens
        if outcome.cost is not None:
            self.cost = (self.cost or 0.0) + outcome.cost
        if outcome.failure is not None and outcome.status in ("failed", "ungraded"):
            text = f"{outcome.failure.boundary}/{outcome.failure.kind}: {outcome.failure.message}"
            self.failures[text] = self.failures.pop(text, 0) + 1
            while len(self.failures) > _DISTINCT:
                del self.failures[next(iter(self.failures))]
        self._count(outcome.request.row_id, outcome.status, outcome.reward)

    def _count(self, row_id: str, status: Status, reward: float | None) -> None:
        self.outcomes[status] += 1
        row = self._open.setdefault(row_id, [0, 0.0, self.plan.attempts])
        if reward is not None and status == "scored":
            self._sums.remove(int(row[0]), row[1])
            self._inside = self._inside and 0.0 <= reward <= 1.0
            row[0], row[1] = row[0] + 1, row[1] + reward
            self._sums.add(int(row[0]), row[1])
        row[2] -= 1
        if row[2] <= 0:
            del self._open[row_id]


class Watcher(Protocol):
    """Who looks on while a run runs. Called on the event loop: it must not block and must not raise."""

    def began(self, standing: Standing) -> None: ...
    def moved(self, standing: Standing) -> None: ...
    def told(self, text: str) -> None: ...
    def ended(self, standing: Standing) -> None: ...


class Nobody:
    """The watcher that looks away."""

    def began(self, standing: Standing) -> None: ...
    def moved(self, standing: Standing) -> None: ...
    def told(self, text: str) -> None: ...
    def ended(self, standing: Standing) -> None: ...
