"""Scores make one reward, or none; never one that is not a finite number."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.graders.reward import RewardGate, RewardRule, Verdict, combine

CASES: list[tuple[dict[str, Any], dict[str, float | None], float]] = [
    ({}, {"a": 1.0, "b": 0.0}, 0.5),
    ({"weights": {"a": 3.0}}, {"a": 1.0, "b": 0.0}, 0.75),
    ({"weights": {"a": 0.6, "b": 0.3, "c": 0.1}}, {"a": 1.0, "b": 0.5, "c": 0.0}, 0.75),
    ({"weights": {"a": 0.6, "b": 0.4}}, {"a": 1.0, "b": None}, 1.0),
    ({"combine": "weighted_sum", "weights": {"a": 2.0}}, {"a": 1.0, "b": 0.5}, 2.5),
    ({"combine": "weighted_sum"}, {"a": 1.0, "b": None}, 1.0),
    ({"combine": "min"}, {"a": 1.0, "b": 0.25}, 0.25),
    ({"combine": "min"}, {"a": 1.0, "b": None}, 1.0),
    ({"combine": "product"}, {"a": 0.5, "b": 0.5}, 0.25),
    ({"combine": "all"}, {"a": 1.0, "b": 1.0}, 1.0),
    ({"combine": "all"}, {"a": 1.0, "b": 0.999}, 0.0),
    ({"measured": ["b"]}, {"a": 1.0, "b": 0.0}, 1.0),
    ({"combine": "min", "measured": ["b"]}, {"a": 1.0, "b": 0.0}, 1.0),
]


@pytest.mark.parametrize(("rule", "scores", "reward"), CASES)
def test_combine(rule: dict[str, Any], scores: dict[str, float | None], reward: float) -> None:
    verdict = combine(scores, RewardRule(**rule), {"a"})
    assert verdict.reward == pytest.approx(reward)
    assert verdict == Verdict(verdict.reward)


def test_a_required_score_that_is_missing_means_no_reward() -> None:
    rule = RewardRule(gates=[RewardGate("a", below=0.5, reward=0.0)])
    assert combine({"a": 0.0, "b": None}, rule, ["b"]) == Verdict(None, ["b"])
    assert combine({"a": None, "b": None}, rule, ["b", "a"]) == Verdict(None, ["a", "b"])
    assert combine({"a": 1.0}, rule, {"zz"}) == Verdict(None, ["zz"])


def test_nothing_that_counts_means_no_reward() -> None:
    assert combine({}, RewardRule(), []) == Verdict(None)
    assert combine({"a": 1.0}, RewardRule(measured=["a"]), []) == Verdict(None)
    assert combine({"a": None, "m": 1.0}, RewardRule(measured=["m"]), []) == Verdict(None, ["a"])
    assert combine({"a": 1.0}, RewardRule(weights={"a": 0.0}), ["a"]) == Verdict(None)


def test_the_first_gate_that_closes_decides() -> None:
    gates = [
        RewardGate("a", below=0.5),
        RewardGate("b", above=0.9, reward=-1.0),
        RewardGate("a", above=0.0, reward=5.0),
    ]
    rule = RewardRule(gates=gates)
    assert combine({"a": 0.4, "b": 1.0}, rule, ["a"]) == Verdict(0.0, gate="a")
    assert combine({"a": 0.5, "b": 0.91}, rule, ["a"]) == Verdict(-1.0, gate="b")
    assert combine({"a": 0.5, "b": 0.9}, rule, ["a"]) == Verdict(5.0, gate="a")
    assert combine({"a": 0.0 + 1e-12, "b": None}, RewardRule(gates=gates[1:2]), ["a"]) == Verdict(1e-12)
    measured = RewardRule(measured=["m"], gates=[RewardGate("m", below=1.0)])
    assert combine({"a": 1.0, "m": 0.0}, measured, ["a"]) == Verdict(0.0, gate="m")


def test_the_range_clips_and_says_so() -> None:
    rule = RewardRule("weighted_sum", {"a": 3.0}, range=(0.0, 1.0))
    assert combine({"a": 1.0}, rule, ["a"]) == Verdict(1.0, clipped=3.0)
    assert combine({"a": 0.25}, rule, ["a"]) == Verdict(0.75)
    gated = RewardRule(gates=[RewardGate("a", below=1.0, reward=-1.0)], range=(0.0, 1.0))
    assert combine({"a": 0.5}, gated, ["a"]) == Verdict(0.0, gate="a", clipped=-1.0)


BROKEN: list[dict[str, Any]] = [
    {"weights": {"a": -1.0}},
    {"weights": {"a": math.nan}},
    {"weights": {"a": math.inf}},
    {"gates": [RewardGate("a", below=1.0, reward=math.nan)]},
    {"range": (1.0, 0.0)},
    {"range": (0.0, math.inf)},
]


@pytest.mark.parametrize("rule", BROKEN)
def test_rules_that_cannot_be(rule: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="found"):
        RewardRule(**rule)


def test_a_score_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="must be finite"):
        combine({"a": math.nan}, RewardRule(), [])


numbers = st.floats(allow_nan=False, allow_infinity=False)
names = st.sampled_from("abcd")


@settings(max_examples=300, deadline=None)
@given(
    scores=st.dictionaries(names, numbers | st.none()),
    weights=st.dictionaries(names, st.floats(0, 1e308)),
    how=st.sampled_from(["weighted_mean", "weighted_sum", "min", "product", "all"]),
    required=st.sets(names),
    measured=st.sets(names),
    bounds=st.none() | st.tuples(st.floats(-10, 0), st.floats(0, 10)),
)
def test_a_reward_is_finite_in_range_and_never_made_of_nothing(
    scores: dict[str, float | None],
    weights: dict[str, float],
    how: Any,
    required: set[str],
    measured: set[str],
    bounds: Any,
) -> None:
    verdict = combine(scores, RewardRule(how, weights, measured, range=bounds), required)
    if any(scores.get(name) is None for name in required):
        assert verdict.reward is None
        assert set(verdict.missing) == {name for name in required if scores.get(name) is None}
    if verdict.reward is not None:
        assert math.isfinite(verdict.reward)
        assert any(value is not None and name not in measured for name, value in scores.items())
        if bounds:
            assert bounds[0] <= verdict.reward <= bounds[1]
        if how in ("weighted_mean", "min") and not bounds:
            counted = [value for name, value in scores.items() if value is not None and name not in measured]
            assert min(counted) <= verdict.reward <= max(counted)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(names, st.floats(0, 1), min_size=1), names)
def test_a_measured_grader_changes_nothing(scores: dict[str, float], name: str) -> None:
    rule = RewardRule(measured=[name])
    without = {key: value for key, value in scores.items() if key != name}
    assert combine(scores, rule, []).reward == combine(without, rule, []).reward
