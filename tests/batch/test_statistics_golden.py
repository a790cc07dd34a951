"""Statistics against what other implementations gave (SciPy 1.17, statsmodels 0.15), and whether 95 % is 95 %."""

from __future__ import annotations

import math
import random

import pytest

from runner.batch.paired import flip_test, paired_difference, sign_flip
from runner.batch.statistics import UNIT, Estimate, cluster_mean, pass_all, pass_at, wilson
from runner.batch.student import t_cdf, t_quantile

ROWS = [[1, 0, 1, 1], [0, 0, 0, 1], [1, 1, 1], [0.25, 0.5], [0], [1, 1, 0, 0, 0.75], [0, 0, 0.125, 0], [1, 1, 1, 1]]


def test_the_clustered_error_is_that_of_statsmodels() -> None:
    """OLS on a constant with cov_type="cluster", and scipy.stats.t for the interval."""
    found = cluster_mean([(len(row), sum(row)) for row in ROWS])
    assert found.value == pytest.approx(0.5416666666666669, rel=1e-12)
    assert found.error == pytest.approx(0.136482185431448, rel=1e-12)
    assert found.low == pytest.approx(0.21893758108508155, rel=1e-9)
    assert found.high == pytest.approx(0.8643957522482522, rel=1e-9)


def test_wilson_is_that_of_statsmodels() -> None:
    assert wilson(17 / 20, 20) == pytest.approx((0.639581135259243, 0.9476312541037833), rel=1e-12)


@pytest.mark.parametrize(("events", "poisson"), [(1, 0.05129329438755053), (2, 0.35536151069866195),
                                                 (3, 0.8176914471639534)])  # fmt: skip
def test_a_rare_event_has_the_limit_of_poisson(events: int, poisson: float) -> None:
    """scipy.stats.chi2.ppf(0.05, 2 * events) / 2: the modified Wilson interval of Brown, Cai and DasGupta."""
    rows = [(1, 1.0)] * events + [(1, 0.0)] * (125 - events)
    size = _size(rows)
    found = cluster_mean(rows, UNIT, binary=True)
    mirrored = cluster_mean([(1, 1.0 - total) for _, total in rows], UNIT, binary=True)
    assert found.low is not None and found.high is not None
    assert found.low <= poisson / size * 1.06
    assert mirrored.high == pytest.approx(1 - found.low, abs=1e-12)
    assert mirrored.low == pytest.approx(1 - found.high, abs=1e-12)


def _size(rows: list[tuple[int, float]]) -> int:
    return sum(count for count, _ in rows)


def test_pairs_are_those_of_scipy() -> None:
    differences = [0.5, -0.25, 0.75, 0.1, 0.3, -0.05, 0.2, 0.6, -0.4, 0.15]
    assert sign_flip(differences) == (0.14453125, "exact sign flips")  # permutation_test, every sample
    found = paired_difference(differences).estimate
    spread = math.sqrt(sum((one - 0.19) ** 2 for one in differences) / 9 / 10)
    assert found.value == pytest.approx(0.19)
    assert found.high == pytest.approx(0.19 + 2.262157162798205 * spread)  # t.ppf(0.975, 9)
    assert t_quantile(0.975, 9) == pytest.approx(2.262157162798205, rel=1e-10)
    assert t_cdf(-1.75, 17) == pytest.approx(0.04907232108750959, rel=1e-10)


def test_mcnemar_is_exact_however_many_rows_flipped() -> None:
    assert flip_test(700, 601) == pytest.approx(0.006565818164007713, rel=1e-12)  # mcnemar(exact=True)
    assert flip_test(600, 450) == pytest.approx(4.111890930721202e-06, rel=1e-12)
    assert flip_test(5_001, 5_000) == pytest.approx(flip_test(5_000, 4_999), abs=1e-3)


def test_p_does_not_depend_on_the_order_of_rows_nor_on_who_is_first() -> None:
    rng = random.Random(2)
    differences = [round(rng.gauss(0.1, 0.5) * 8) / 8 for _ in range(60)]
    shuffled = rng.sample(differences, len(differences))
    p = sign_flip(differences)
    assert p == sign_flip(shuffled) == sign_flip([-one for one in differences])
    assert p[1].endswith("sign flips, seed 0")


# --- coverage


def chance(shape: str, rng: random.Random) -> float:
    """How likely a row is to pass: every row alike, or very unlike each other."""
    kind, _, numbers = shape.partition(" ")
    first, *rest = map(float, numbers.split())
    return first if kind == "same" else rng.betavariate(first, rest[0])


def truth(shape: str, k: int) -> float:
    """The chance that at least one of k attempts at a new row passes."""
    kind, _, numbers = shape.partition(" ")
    first, *rest = map(float, numbers.split())
    if kind == "same":
        return float(1 - (1 - first) ** k)
    missed = 1.0
    for step in range(k):
        missed *= (rest[0] + step) / (first + rest[0] + step)
    return 1 - missed


def holds(found: Estimate, value: float) -> bool:
    assert found.low is not None and found.high is not None
    return found.low - 1e-12 <= value <= found.high + 1e-12


SHAPES = ("same 0.02", "same 0.5", "same 0.97", "beta 0.5 0.5", "beta 4 2", "beta 1 9", "beta 1.8 0.2")
CASES = [(shape, rows, attempts) for shape in SHAPES for rows in (20, 125) for attempts in (1, 4, 8)]


@pytest.mark.parametrize(("shape", "rows", "attempts"), CASES)
def test_95_percent_is_95_percent(shape: str, rows: int, attempts: int) -> None:
    """At least 93 % within what 400 trials can tell (two standard errors): too wide is allowed, too narrow is not."""
    rng = random.Random(f"{shape} {rows} {attempts}")
    trials = 400
    steps = [k for k in (2, attempts) if k <= attempts]
    covered = dict.fromkeys(["mean", *steps], 0)
    for _ in range(trials):
        passed = []
        for _ in range(rows):
            likely = chance(shape, rng)
            passed.append(sum(rng.random() < likely for _ in range(attempts)))
        mean = cluster_mean([(attempts, float(one)) for one in passed], UNIT, binary=True)
        covered["mean"] += holds(mean, truth(shape, 1))
        for k in steps:
            found = cluster_mean([(1, pass_at(attempts, one, k)) for one in passed], UNIT)
            covered[k] += holds(found, truth(shape, k))
    floor = 0.93 - 2 * math.sqrt(0.95 * 0.05 / trials)
    assert {name: share for name, share in covered.items() if share / trials < floor} == {}


@pytest.mark.parametrize("attempts", [1, 4, 8, 29])
def test_pass_at_k_is_the_product_formula_and_pass_all_the_hypergeometric(attempts: int) -> None:
    for passed in range(attempts + 1):
        for k in range(1, attempts + 1):
            missed = math.prod(1 - k / n for n in range(attempts - passed + 1, attempts + 1))
            expected = 1 - missed if attempts - passed >= k else 1.0
            assert pass_at(attempts, passed, k) == pytest.approx(expected, abs=1e-12)
            every = math.prod((passed - step) / (attempts - step) for step in range(k)) if passed >= k else 0.0
            assert pass_all(attempts, passed, k) == pytest.approx(every, abs=1e-12)
