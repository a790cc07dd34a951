"""Student's t distribution: its CDF and its quantiles, to full double precision.

Written out because the alternative costs 157 MB and most of a second to import for this one number.
"""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300
_CLOSE = 1e-16


def t_cdf(value: float, freedom: float) -> float:
    """P(T <= value) for Student's t with `freedom` degrees of freedom. Raises ValueError if `freedom` <= 0."""
    if freedom <= 0:
        raise ValueError(f"degrees of freedom must be positive, found {freedom}")
    upper = 0.5 * _beta_tail(value, freedom)
    return 1.0 - upper if value > 0 else upper


@lru_cache(maxsize=4096)
def t_quantile(probability: float, freedom: float) -> float:
    """The value below which Student's t lies with `probability` (0 < probability < 1)."""
    if not 0.0 < probability < 1.0:
        raise ValueError(f"a probability must lie between 0 and 1, found {probability}")
    if probability == 0.5:
        return 0.0
    tail = min(probability, 1.0 - probability)
    value = _upper_value(tail, freedom)
    return value if probability > 0.5 else -value


def _upper_value(tail: float, freedom: float) -> float:
    """The positive value with `tail` above it: a bracket, then bisection, which cannot diverge."""
    low, high = 0.0, 1.0
    while 0.5 * _beta_tail(high, freedom) > tail:
        low, high = high, high * 2.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        if middle in (low, high):
            break
        if 0.5 * _beta_tail(middle, freedom) > tail:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def _beta_tail(value: float, freedom: float) -> float:
    """P(|T| > |value|)."""
    square = value * value
    if math.isinf(square):
        return 0.0
    # Both arguments are computed from their own quotient: 1 - x would lose the digits that matter far out.
    return _incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + square), square / (freedom + square))


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """The regularized incomplete beta I_x(a, b), with `rest` = 1 - x."""
    if x <= 0.0:
        return 0.0
    if rest <= 0.0:
        return 1.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest))
    if x < (a + 1.0) / (a + b + 2.0):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta, by Lentz's method."""
    c, d = 1.0, 1.0 / _away_from_zero(1.0 - (a + b) * x / (a + 1.0))
    result = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _away_from_zero(1.0 + term * d)
            c = _away_from_zero(1.0 + term / c)
            result *= c * d
        if abs(c * d - 1.0) < _CLOSE * 10:
            break
    return result


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
