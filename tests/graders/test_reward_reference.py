"""`combine` against a second reading of docs/graders.md in exact fractions, which shares no code with it."""

from __future__ import annotations

from fractions import Fraction
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.graders.reward import RewardGate, RewardRule, Verdict, combine

NAMES = ("answer", "tone", "path", "length")
HOWS = ("weighted_mean", "weighted_sum", "min", "product", "all")

eighths = st.integers(-16, 16).map(lambda n: n / 8)  # floats that fractions hold exactly
graders = st.sampled_from(NAMES)
gates = st.builds(RewardGate, graders, st.none() | eighths, st.none() | eighths, eighths)
rules = st.builds(
    RewardRule,
    combine=st.sampled_from(HOWS),
    weights=st.dictionaries(graders, st.integers(0, 12).map(lambda n: n / 4)),
    measured=st.frozensets(graders, max_size=2),
    gates=st.lists(gates, max_size=3),
    range=st.none() | st.tuples(eighths, eighths).map(lambda ends: (min(ends), max(ends))),
)
scores = st.dictionaries(graders, st.none() | eighths | st.sampled_from([0.0, 1.0]))


def reference(given_scores: dict[str, float | None], rule: RewardRule, required: set[str]) -> Fraction | None:
    """The reward as the documentation says it."""
    if any(given_scores.get(name) is None for name in required):
        return None
    spoke = {name: Fraction(score) for name, score in given_scores.items() if score is not None}
    made = _gated(spoke, rule)
    if made is None:
        counted = {name: score for name, score in spoke.items() if name not in rule.measured}
        made = _made(counted, rule)
    if made is None or rule.range is None:
        return made
    return min(max(made, Fraction(rule.range[0])), Fraction(rule.range[1]))


def _gated(spoke: dict[str, Fraction], rule: RewardRule) -> Fraction | None:
    for gate in rule.gates:
        score = spoke.get(gate.grader)
        if score is None:
            continue
        if (gate.below is not None and score < gate.below) or (gate.above is not None and score > gate.above):
            return Fraction(gate.reward)
    return None


def _made(counted: dict[str, Fraction], rule: RewardRule) -> Fraction | None:
    if not counted:
        return None
    weights = {name: Fraction(rule.weights.get(name, 1.0)) for name in counted}
    weighted = sum((score * weights[name] for name, score in counted.items()), Fraction(0))
    if rule.combine == "weighted_mean":
        return weighted / sum(weights.values()) if sum(weights.values()) else None
    return {
        "weighted_sum": weighted,
        "min": min(counted.values()),
        "product": prod(counted.values(), start=Fraction(1)),
        "all": Fraction(all(score >= 1 for score in counted.values())),
    }[rule.combine]


@settings(max_examples=300, deadline=None)
@given(scores, rules, st.sets(graders, max_size=2))
def test_a_reward_is_what_the_documentation_says(
    given_scores: dict[str, float | None], rule: RewardRule, required: set[str]
) -> None:
    verdict = combine(given_scores, rule, required)
    expected = reference(given_scores, rule, required)
    if expected is None:
        assert verdict.reward is None
        return
    assert verdict.reward == pytest.approx(float(expected), abs=1e-12)
    assert verdict.missing == []
    unbounded = reference(given_scores, _without_range(rule), required)
    assert unbounded is not None
    came_out = verdict.reward if verdict.clipped is None else verdict.clipped
    assert came_out == pytest.approx(float(unbounded), abs=1e-12)


def _without_range(rule: RewardRule) -> RewardRule:
    return RewardRule(rule.combine, rule.weights, rule.measured, rule.gates)


@settings(max_examples=80, deadline=None)
@given(scores, rules, graders)
def test_an_optional_grader_that_is_silent_is_as_good_as_absent(
    given_scores: dict[str, float | None], rule: RewardRule, name: str
) -> None:
    silent = {**given_scores, name: None}
    absent = {key: value for key, value in given_scores.items() if key != name}
    assert combine(silent, rule, ()).reward == combine(absent, rule, ()).reward


@settings(max_examples=80, deadline=None)
@given(scores, rules, st.permutations(NAMES))
def test_the_order_of_graders_changes_nothing(
    given_scores: dict[str, float | None], rule: RewardRule, order: list[str]
) -> None:
    turned = {name: given_scores[name] for name in order if name in given_scores}
    one, other = combine(given_scores, rule, ()), combine(turned, rule, ())
    assert one.reward == (None if other.reward is None else pytest.approx(other.reward, abs=1e-12))
    assert one.gate == other.gate


CASES: list[tuple[dict[str, float | None], RewardRule, set[str], Verdict]] = [
    ({"answer": 0.5}, RewardRule(gates=[RewardGate("answer", below=0.5)]), {"answer"}, Verdict(0.5)),
    ({"answer": 0.5}, RewardRule(gates=[RewardGate("answer", above=0.5)]), {"answer"}, Verdict(0.5)),
    ({"answer": None, "tone": 1.0}, RewardRule(gates=[RewardGate("answer", below=0.5)]), {"tone"}, Verdict(1.0)),
    ({"answer": None, "path": 1.0}, RewardRule(measured=["path"]), set(), Verdict(None, ["answer"])),
    ({"path": 0.0}, RewardRule(measured=["path"], gates=[RewardGate("path", below=1.0)]), set(),
     Verdict(0.0, gate="path")),
    ({"answer": 2.0}, RewardRule(range=(0.0, 1.0)), {"answer"}, Verdict(1.0, clipped=2.0)),
    ({"answer": -0.0}, RewardRule(range=(0.0, 1.0)), {"answer"}, Verdict(0.0)),
    ({"answer": 1.0, "tone": 0.0}, RewardRule(weights={"tone": 0.0}), {"answer", "tone"}, Verdict(1.0)),
    ({"answer": 1.0, "tone": 0.0}, RewardRule("all", weights={"tone": 0.0}), set(), Verdict(0.0)),
]  # fmt: skip


@pytest.mark.parametrize(("given_scores", "rule", "required", "verdict"), CASES)
def test_edges(given_scores: dict[str, Any], rule: RewardRule, required: set[str], verdict: Verdict) -> None:
    assert combine(given_scores, rule, required) == verdict
