"""Every number against a closed form or a brute force that shares no code with it."""

import itertools
import math
import random
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.batch.paired import DRAWS, flip_test, paired_difference, sign_flip
from runner.batch.statistics import (
    UNIT,
    ClusterSums,
    cluster_mean,
    ladder,
    pass_all,
    pass_at,
    quantile,
    wilson,
)
from runner.batch.student import t_cdf, t_quantile

ROWS = st.lists(st.lists(st.floats(-100, 100), min_size=1, max_size=5), min_size=2, max_size=12)


def sums(rows: list[list[float]]) -> list[tuple[int, float]]:
    return [(len(row), sum(row)) for row in rows]


# --- Student's t


@pytest.mark.parametrize(
    ("probability", "freedom", "value"),
    [
        (0.975, 1, 12.706204736432095),
        (0.975, 2, 4.302652729911275),
        (0.975, 5, 2.5705818366147395),
        (0.975, 30, 2.0422724563012373),
        (0.975, 124, 1.9792801166),
        (0.995, 10, 3.169272667175838),
        (0.9999, 3, 22.203742273),
        (0.975, 1e6, 1.9599664),
    ],
)
def test_t_quantiles_of_the_tables(probability: float, freedom: float, value: float) -> None:
    assert t_quantile(probability, freedom) == pytest.approx(value, rel=1e-7)
    assert t_quantile(1 - probability, freedom) == pytest.approx(-value, rel=1e-6)


@given(st.floats(0.001, 0.999))
@settings(max_examples=60)
def test_t_has_closed_forms_for_one_and_two_degrees(probability: float) -> None:
    assert t_quantile(probability, 1) == pytest.approx(math.tan(math.pi * (probability - 0.5)), rel=1e-9, abs=1e-12)
    spread = 4 * probability * (1 - probability)
    closed = 2 * (probability - 0.5) * math.sqrt(2 / spread)
    assert t_quantile(probability, 2) == pytest.approx(closed, rel=1e-9, abs=1e-12)


@given(st.floats(1e-6, 1 - 1e-6), st.integers(1, 50_000))
@settings(max_examples=80)
def test_t_quantile_inverts_the_cdf(probability: float, freedom: int) -> None:
    assert t_cdf(t_quantile(probability, freedom), freedom) == pytest.approx(probability, rel=1e-8)


def test_t_refuses_what_has_no_answer() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        t_quantile(1.0, 3)
    with pytest.raises(ValueError, match="degrees of freedom"):
        t_cdf(0.0, 0)


# --- means by cluster


@given(ROWS)
@settings(max_examples=80)
def test_cluster_variance_is_the_textbook_sum(rows: list[list[float]]) -> None:
    values = [value for row in rows for value in row]
    mean, groups, count = fmean(values), len(rows), len(values)
    spread = sum(sum(value - mean for value in row) ** 2 for row in rows)
    expected = math.sqrt(groups / (groups - 1) * spread) / count
    estimate = cluster_mean(sums(rows))
    assert estimate.value == pytest.approx(mean, abs=1e-9)
    assert estimate.error == pytest.approx(expected, rel=1e-5, abs=1e-5)


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=20, unique=True))
@settings(max_examples=60)
def test_one_value_a_row_is_the_plain_standard_error(values: list[float]) -> None:
    mean = fmean(values)
    plain = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1) / len(values))
    assert cluster_mean((1, value) for value in values).error == pytest.approx(plain, rel=1e-5, abs=1e-6)


def test_a_common_offset_eats_no_digits() -> None:
    near, far = [0.0, 1.0, 1.0, 0.0, 1.0], 1e9
    plain = cluster_mean((1, value) for value in near)
    moved = cluster_mean((1, value + far) for value in near)
    assert moved.error == pytest.approx(plain.error, rel=1e-6)


@given(ROWS)
@settings(max_examples=40)
def test_a_row_taken_out_again_leaves_no_trace(rows: list[list[float]]) -> None:
    running, fresh = ClusterSums(), ClusterSums()
    for count, total in sums(rows):
        running.add(1, total / count)
        running.remove(1, total / count)
        running.add(count, total)
        fresh.add(count, total)
    assert running.mean == pytest.approx(fresh.mean, abs=1e-7)
    assert running.rows == fresh.rows


def test_all_passing_is_not_certainty() -> None:
    estimate = cluster_mean([(8, 8.0)] * 10, UNIT, binary=True)
    low, high = wilson(1.0, 10)
    assert (estimate.value, estimate.low, estimate.high) == (1.0, low, high)
    assert low == pytest.approx(0.7225, abs=1e-3)
    assert high == 1.0


def test_without_bounds_a_constant_has_no_known_error() -> None:
    estimate = cluster_mean([(2, 4.0)] * 5)
    assert (estimate.value, estimate.low, estimate.high) == (2.0, None, None)
    assert cluster_mean([]).value is None


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), min_size=1, max_size=30))
@settings(max_examples=80)
def test_a_bounded_interval_stays_in_its_bounds_and_holds_the_mean(rows: list[tuple[int, int]]) -> None:
    estimate = cluster_mean([(count, float(min(count, passed))) for count, passed in rows], UNIT, binary=True)
    assert estimate.low is not None and estimate.high is not None and estimate.value is not None
    assert 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0
    assert estimate.low < estimate.high


def test_bounds_may_be_any_range() -> None:
    unit = cluster_mean([(1, 0.0), (1, 1.0), (1, 1.0)], UNIT)
    wide = cluster_mean([(1, -1.0), (1, 1.0), (1, 1.0)], (-1.0, 1.0))
    assert unit.low is not None and unit.high is not None
    assert wide.low == pytest.approx(2 * unit.low - 1)
    assert wide.high == pytest.approx(2 * unit.high - 1)


@pytest.mark.parametrize(("rows", "binary"), [(25, True), (125, True), (60, False)])
def test_95_percent_intervals_cover_the_truth(rows: int, binary: bool) -> None:
    rng = random.Random(rows)
    covered = 0
    trials = 400
    for _ in range(trials):
        data = []
        for _ in range(rows):
            chance = rng.betavariate(0.6, 0.4)  # a U shape: most rows easy or hard, mean 0.6
            passed = sum(rng.random() < chance for _ in range(8))
            data.append((8, float(passed)) if binary else (1, chance))
        estimate = cluster_mean(data, UNIT, binary=binary)
        assert estimate.low is not None and estimate.high is not None
        covered += estimate.low <= 0.6 <= estimate.high
    assert 0.92 <= covered / trials <= 0.985


# --- pass@k


@given(st.integers(1, 7), st.data())
@settings(max_examples=60)
def test_pass_at_k_counts_every_choice_of_attempts(attempts: int, data: st.DataObject) -> None:
    passed = data.draw(st.integers(0, attempts))
    k = data.draw(st.integers(1, attempts))
    results = [True] * passed + [False] * (attempts - passed)
    choices = list(itertools.combinations(results, k))
    assert pass_at(attempts, passed, k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_all(attempts, passed, k) == pytest.approx(sum(map(all, choices)) / len(choices))


def test_pass_at_more_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="k <= attempts"):
        pass_at(3, 1, 4)


def test_the_ladder_ends_at_the_attempts() -> None:
    assert [ladder(n) for n in (0, 1, 2, 6, 8)] == [[], [1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8]]


# --- pairs


@given(st.lists(st.sampled_from([-1.0, -0.5, 0.0, 0.25, 1.0]), min_size=1, max_size=9))
@settings(max_examples=60)
def test_sign_flips_count_every_pattern(differences: list[float]) -> None:
    p, _ = sign_flip(differences)
    seen = abs(sum(differences))
    patterns = list(itertools.product((1, -1), repeat=len(differences)))
    extreme = [abs(sum(s * d for s, d in zip(signs, differences, strict=True))) >= seen - 1e-12 for signs in patterns]
    assert p == pytest.approx(sum(extreme) / len(patterns))


def test_drawn_flips_agree_with_the_binomial_and_repeat() -> None:
    differences = [1.0] * 22 + [-1.0] * 8
    p, method = sign_flip(differences, seed=3)
    assert method == f"{DRAWS:,} sign flips, seed 3"
    assert p == pytest.approx(flip_test(22, 8), abs=0.006)
    assert sign_flip(differences, seed=3) == (p, method)


def test_many_sizes_fall_back_to_t() -> None:
    rng = random.Random(1)
    p, method = sign_flip([rng.gauss(0.0, 1.0) for _ in range(4000)])
    assert method == "paired t"
    assert p is not None and 0.001 < p <= 1.0


def test_a_paired_difference_sees_what_separate_intervals_cannot() -> None:
    rng = random.Random(5)
    base = [rng.random() for _ in range(200)]
    better = [value + 0.02 + rng.gauss(0, 0.02) for value in base]
    result = paired_difference([b - a for a, b in zip(base, better, strict=True)])
    assert result.estimate.low is not None and result.estimate.low > 0.01
    assert result.p is not None and result.p < 0.001
    first = cluster_mean(((1, value) for value in base), UNIT)
    assert first.high is not None and first.high > fmean(better)


def test_no_difference_is_said_so() -> None:
    assert paired_difference([0.0, 0.0]).p == 1.0
    assert paired_difference([]).estimate.value is None


@given(st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=60)
def test_mcnemar_is_the_binomial_tail(won: int, lost: int) -> None:
    count = won + lost
    chances = [math.comb(count, k) / 2**count for k in range(count + 1)]
    expected = sum(chance for k, chance in enumerate(chances) if abs(k - count / 2) >= abs(won - count / 2))
    assert flip_test(won, lost) == pytest.approx(min(1.0, expected))


# --- quantiles


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=20), st.floats(0, 1))
@settings(max_examples=60)
def test_quantiles_lie_between_their_neighbours(values: list[float], share: float) -> None:
    ordered = sorted(values)
    place = share * (len(values) - 1)
    result = quantile(ordered, share)
    assert ordered[math.floor(place)] - 1e-6 <= result <= ordered[math.ceil(place)] + 1e-6


def test_quantiles_of_nothing_are_refused() -> None:
    assert quantile([1.0, 2.0, 3.0, 4.0], 0.5) == 2.5
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)
