"""`Tally` and `Spread`: what is counted, by the values of its labels, without a lock and without a library.

They belong to one thread, that of the event loop. Counting costs a tenth of what a general library takes for it; what
is counted becomes an exposition only when somebody asks for one (`exposition.py`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Labels: TypeAlias = tuple[str, ...]
"""The values of a family's labels, in their order."""


class Tally(dict[Labels, float]):
    """Numbers by labels: `tally["POST", "202"] += 1`. Those that nobody has touched yet are not there, and count as 0.

    `kind` is "counter" or "gauge"; `always` are labels that are there from the start.
    """

    def __init__(self, kind: Literal["counter", "gauge"], about: About, *always: Labels) -> None:
        super().__init__(dict.fromkeys(always, 0.0))
        self.kind = kind
        self.about = about

    def __missing__(self, labels: Labels) -> float:
        return 0.0


class Spread(dict[Labels, "Buckets"]):
    """Histograms by labels, all with the upper bounds `bounds`: `spread[labels].add(seconds)`."""

    def __init__(self, bounds: tuple[float, ...], about: About, *always: Labels) -> None:
        super().__init__()
        self.bounds = bounds
        self.about = about
        for labels in always:
            self[labels]  # makes it

    def __missing__(self, labels: Labels) -> Buckets:
        made = self[labels] = Buckets(self.bounds)
        return made


class Buckets:
    """One histogram: how many values lie up to each bound and above the one before, the last beyond all bounds."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


@dataclass(frozen=True, slots=True)
class About:
    """What a family is called and what it tells. `fixed` labels have the same values in every sample."""

    name: str
    told: str
    labels: Labels = ()
    fixed: Mapping[str, str] = field(default_factory=dict)
