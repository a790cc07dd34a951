"""`Tally`: how many rollouts ended, and how, since somebody last asked."""

from __future__ import annotations

from collections import Counter

from runner.records.rollout import Outcome


class Tally:
    """Counts rollouts by how they ended."""

    def __init__(self) -> None:
        self.ended: Counter[str] = Counter()

    def end(self, outcome: Outcome) -> None:
        """One has ended."""
        self.ended[outcome.status] += 1
