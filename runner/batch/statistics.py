"""Numbers with their error bars: means clustered by row, pass@k and pass^k, quantiles.

Attempts of one row are not independent, so the row is the unit everywhere: a mean over 125 rows x 8 attempts has
125 clusters, and its interval uses Student's t with 124 degrees of freedom.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

from runner.batch.student import t_quantile

LEVEL = 0.95
"""The confidence of every interval that is printed."""

Bounds = tuple[float, float]
UNIT: Bounds = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval. `n` values in `rows` clusters; everything is None where nothing can be said."""

    value: float | None
    low: float | None
    high: float | None
    n: int
    rows: int
    error: float | None = None
    """The standard error, clustered by row."""

    def to_json(self, name: str = "mean") -> dict[str, float | int | None]:
        return {name: self.value, "low": self.low, "high": self.high, "n": self.n, "rows": self.rows}


NOTHING = Estimate(None, None, None, 0, 0)


class ClusterSums:
    """Running sums of a clustered mean: exact in one pass, forty bytes however many rows.

    Values are shifted by the first row's mean, so that a large common offset does not eat the digits.
    """

    __slots__ = ("count", "nn", "rows", "shift", "sn", "ss", "total")

    def __init__(self) -> None:
        self.rows = 0
        self.count = 0
        self.shift = 0.0
        self.total = self.ss = self.sn = self.nn = 0.0

    def add(self, count: int, total: float) -> None:
        """Add a row: `count` values that sum to `total`. A row without values is no cluster."""
        if count <= 0:
            return
        if self.rows == 0:
            self.shift = total / count
        shifted = total - count * self.shift
        self.rows += 1
        self.count += count
        self.total += shifted
        self._square(count, shifted, +1)

    def remove(self, count: int, total: float) -> None:
        """Take a row out again, as it was added: how a row in progress is brought up to date."""
        if count <= 0:
            return
        shifted = total - count * self.shift
        self.rows -= 1
        self.count -= count
        self.total -= shifted
        self._square(count, shifted, -1)

    def _square(self, count: int, shifted: float, sign: int) -> None:
        self.ss += sign * shifted * shifted
        self.sn += sign * shifted * count
        self.nn += sign * count * count

    @property
    def mean(self) -> float:
        return self.shift + self.total / self.count

    def variance(self) -> float | None:
        """The cluster-robust variance of the mean, or None for fewer than two rows."""
        if self.rows < 2:
            return None
        centre = self.total / self.count
        spread = self.ss - 2 * centre * self.sn + centre * centre * self.nn
        if spread <= 1e-14 * self.ss:
            spread = 0.0  # what is left is rounding, not variance
        return spread * self.rows / (self.rows - 1) / (self.count * self.count)

    def estimate(self, bounds: Bounds | None = None, *, binary: bool = False) -> Estimate:
        """The mean and its interval. See `interval` for `bounds` and `binary`."""
        if self.count == 0:
            return NOTHING
        variance = self.variance()
        low, high = interval(self.mean, variance, self.rows, self.count if binary else None, bounds)
        error = None if variance is None else math.sqrt(variance)
        return Estimate(_clamp(self.mean, bounds), low, high, self.count, self.rows, error)


def cluster_mean(rows: Iterable[tuple[int, float]], bounds: Bounds | None = None, *, binary: bool = False) -> Estimate:
    """The mean of all values of `rows`, each given as (count, sum), with an interval clustered by row."""
    sums = ClusterSums()
    for count, total in rows:
        sums.add(count, total)
    return sums.estimate(bounds, binary=binary)


def interval(
    mean: float, variance: float | None, rows: int, cap: int | None = None, bounds: Bounds | None = None
) -> tuple[float | None, float | None]:
    """The 95 % interval of a mean over `rows` clusters.

    Without `bounds` it is mean ± t·error, and (None, None) where fewer than two rows or no variance at all leave the
    error unknown. Values known to lie in `bounds` get Wilson's interval at the effective sample size, with the limits
    of a rare event near an end: it stays inside the bounds and is not ±0 when every value is the same. `cap` is that
    size's ceiling (the count, for 0/1 values).
    """
    if bounds is None:
        if not variance:
            return None, None
        reach = t_quantile(0.5 + LEVEL / 2, rows - 1) * math.sqrt(variance)
        return mean - reach, mean + reach
    low, high = bounds
    width = high - low
    if width <= 0:
        return mean, mean
    share = min(1.0, max(0.0, (mean - low) / width))
    quantile, size = _effective(share, (variance or 0.0) / (width * width), rows, cap)
    below, above = _at_the_ends(share, size, wilson(share, size, quantile))
    return low + width * below, low + width * above


def _effective(share: float, variance: float, rows: int, cap: int | None) -> tuple[float, float]:
    """The quantile and the effective sample size of a share: how many independent 0/1 trials tell as much."""
    bernoulli = share * (1.0 - share)
    if variance <= 0.0 or bernoulli <= 0.0:
        # Nothing varied, so the attempts of a row may all be one event: each row counts once.
        return normal_quantile(0.5 + LEVEL / 2), float(rows)
    # One row more, as unlike the others as can be: few rows seldom hold one of the rare rows that make up the variance.
    per_row = (rows * variance / bernoulli * (rows - 1) + 1.0) / rows
    size = rows / per_row
    return t_quantile(0.5 + LEVEL / 2, rows - 1), min(size, cap) if cap is not None else size


_RARE = (0.0, 0.05129329438755053, 0.355361510698662, 0.8176914471639534)
"""The Poisson mean that gives at least 0, 1, 2, 3 events with a chance of 5 %."""


def _at_the_ends(share: float, size: float, interval: Bounds) -> Bounds:
    """Wilson's interval, widened where it covers too little: one to three events (or all but so many) in `size`.

    After Brown, Cai and DasGupta, "Interval Estimation for a Binomial Proportion" (2001), section 4.1.1.
    """
    low, high = interval
    most = 3.5 if size > 50 else 2.5
    events, others = share * size, (1.0 - share) * size
    if 0.0 < events <= most:
        low = min(low, _rare(events) / size)
    if 0.0 < others <= most:
        high = max(high, 1.0 - _rare(others) / size)
    return low, high


def _rare(events: float) -> float:
    below = min(2, math.floor(events))
    return _RARE[below] + min(1.0, events - below) * (_RARE[below + 1] - _RARE[below])


def wilson(share: float, size: float, quantile: float | None = None) -> tuple[float, float]:
    """Wilson's score interval of a share seen in `size` trials."""
    z = normal_quantile(0.5 + LEVEL / 2) if quantile is None else quantile
    square = z * z
    centre = (share + square / (2 * size)) / (1 + square / size)
    reach = z * math.sqrt(share * (1 - share) / size + square / (4 * size * size)) / (1 + square / size)
    low = 0.0 if share <= 0.0 else max(0.0, centre - reach)
    high = 1.0 if share >= 1.0 else min(1.0, centre + reach)
    return low, high


@lru_cache(maxsize=8)
def normal_quantile(probability: float) -> float:
    """The value below which the standard normal lies with `probability`."""
    return NormalDist().inv_cdf(probability)


@lru_cache(maxsize=65536)
def pass_at(attempts: int, passed: int, k: int) -> float:
    """The unbiased chance that at least one of `k` attempts passes, from `passed` of `attempts`.

    Raises ValueError for `k` > `attempts`: it cannot be estimated without bias.
    """
    _check_counts(attempts, passed, k)
    return 1.0 - math.comb(attempts - passed, k) / math.comb(attempts, k)


@lru_cache(maxsize=65536)
def pass_all(attempts: int, passed: int, k: int) -> float:
    """pass^k: the unbiased chance that all of `k` attempts pass. Raises ValueError for `k` > `attempts`."""
    _check_counts(attempts, passed, k)
    return math.comb(passed, k) / math.comb(attempts, k)


def _check_counts(attempts: int, passed: int, k: int) -> None:
    if not (0 <= passed <= attempts and 1 <= k <= attempts):
        raise ValueError(f"need 1 <= k <= attempts and 0 <= passed <= attempts, found k={k}, {passed} of {attempts}")


def ladder(attempts: int) -> list[int]:
    """1, 2, 4, ... up to `attempts`, which is always the last."""
    steps = []
    k = 1
    while k < attempts:
        steps.append(k)
        k *= 2
    return [*steps, attempts] if attempts > 0 else []


def quantile(ordered: Sequence[float], share: float) -> float:
    """The `share` quantile of sorted values, by linear interpolation. Raises ValueError when there are none."""
    if not ordered:
        raise ValueError("no values, no quantile")
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    weight = place - below
    return ordered[below] * (1 - weight) + ordered[above] * weight


def _clamp(value: float, bounds: Bounds | None) -> float:
    return value if bounds is None else min(bounds[1], max(bounds[0], value))
