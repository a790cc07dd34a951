"""Two runs on the same rows: the difference row by row, and whether chance explains it.

Pairing removes what rows differ in by nature, so a change of a few points shows where two separate intervals overlap.
"""

from __future__ import annotations

import itertools
import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from runner.batch.statistics import ClusterSums, Estimate
from runner.batch.student import t_cdf

EXACT = 12
"""Up to so many rows that differ, every pattern of signs is counted."""
DRAWS = 10_000
_MOST_FLIPS = 10_000
_MOST_SIZES = 2_000
"""More distinct sizes of difference than this, and the t test says the same at a fraction of the work."""


@dataclass(frozen=True, slots=True)
class Difference:
    """B minus A over the rows both have: `estimate` with its interval, `p` of a two-sided sign-flip test."""

    estimate: Estimate
    p: float | None
    method: str

    def to_json(self) -> dict[str, object]:
        return {**self.estimate.to_json("difference"), "p": self.p, "method": self.method}


def paired_difference(differences: Sequence[float], *, seed: int = 0) -> Difference:
    """The mean of one difference per row, with a t interval over rows and a p-value.

    With no row, or one, there is no interval. When every row differs by exactly nothing the interval is unknown
    (None), not ±0.
    """
    sums = ClusterSums()
    for difference in differences:
        sums.add(1, difference)
    estimate = sums.estimate()
    p, method = sign_flip(differences, seed=seed)
    return Difference(estimate, p, method)


def sign_flip(differences: Sequence[float], *, seed: int = 0) -> tuple[float | None, str]:
    """The two-sided p-value of "each difference is as likely to have the other sign", and how it was found.

    Exact for up to `EXACT` rows that differ, else `DRAWS` seeded draws, else (very many sizes) Student's t.
    """
    moved = [difference for difference in differences if difference != 0.0]
    if not differences:
        return None, "no rows"
    if not moved:
        return 1.0, "no row differs"
    if len(moved) <= EXACT:
        return _exact(moved), "exact sign flips"
    sizes = Counter(abs(difference) for difference in moved)
    if len(sizes) > _MOST_SIZES:
        return _t_test(differences), "paired t"
    return _drawn(sizes, abs(math.fsum(moved)), seed), f"{DRAWS:,} sign flips, seed {seed}"


def _exact(moved: Sequence[float]) -> float:
    seen = abs(math.fsum(moved))
    sizes = [abs(difference) for difference in moved]
    extreme = sum(
        _at_least(abs(math.fsum(map(_times, signs, sizes))), seen)
        for signs in itertools.product((1, -1), repeat=len(sizes))
    )
    return float(extreme / 2 ** len(sizes))


def _times(sign: int, size: float) -> float:
    return sign * size


def _drawn(sizes: Counter[float], seen: float, seed: int) -> float:
    """Equal sizes are flipped together: the sum of m random signs is 2·bits - m, counted in one word of m bits."""
    rng = random.Random(seed)
    groups = sorted(sizes.items())  # the order of the rows, or which run came first, changes nothing
    extreme = 0
    for _ in range(DRAWS):
        total = sum(size * (2 * rng.getrandbits(count).bit_count() - count) for size, count in groups)
        extreme += _at_least(abs(total), seen)
    return (extreme + 1) / (DRAWS + 1)


def _t_test(differences: Sequence[float]) -> float:
    sums = ClusterSums()
    for difference in differences:
        sums.add(1, difference)
    variance = sums.variance()
    if not variance:
        return 0.0
    return 2.0 * t_cdf(-abs(sums.mean) / math.sqrt(variance), sums.rows - 1)


def _at_least(total: float, seen: float) -> bool:
    return total >= seen * (1 - 1e-12)


def flip_test(won: int, lost: int) -> float:
    """McNemar's exact two-sided p-value for `won` rows that went fail to pass and `lost` that went the other way.

    Above `_MOST_FLIPS` the normal approximation with its correction says the same.
    """
    count = won + lost
    if count == 0:
        return 1.0
    if count > _MOST_FLIPS:
        return math.erfc(max(0.0, abs(won - lost) - 1) / math.sqrt(2 * count))
    tail = ways = 1
    for k in range(min(won, lost)):
        ways = ways * (count - k) // (k + 1)
        tail += ways
    return min(1.0, float(2 * tail / (1 << count)))
