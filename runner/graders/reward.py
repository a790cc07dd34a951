"""Many scores make one reward, or none.

A reward is never invented: without the score of every required grader there is none, and a score that a grader could
not give does not count as anything.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Literal, TypeAlias

Combine: TypeAlias = Literal["weighted_mean", "weighted_sum", "min", "product", "all"]

_LARGEST = sys.float_info.max
_WHOLE = 1.0 - 1e-9


@dataclass(frozen=True, slots=True)
class RewardGate:
    """A condition on one score that replaces the reward: less than `below`, or more than `above`."""

    grader: str
    below: float | None = None
    above: float | None = None
    reward: float = 0.0

    def closes(self, score: float) -> bool:
        return (self.below is not None and score < self.below) or (self.above is not None and score > self.above)


@dataclass(frozen=True, slots=True)
class RewardRule:
    """How scores become a reward.

    `combine`: `weighted_mean`, `weighted_sum`, `min`, `product`, or `all` (1 when every score is at least 1, else 0).
    A grader that `weights` does not name weighs 1; only the weighted ones look at weights. `measured` graders never
    count, though a gate may look at them. Of `gates` the first that closes decides. `range` bounds the reward.
    Raises ValueError for weights, bounds or gate rewards that are not finite, a negative weight, or an empty range.
    """

    combine: Combine = "weighted_mean"
    weights: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    measured: Collection[str] = ()
    gates: Sequence[RewardGate] = ()
    range: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        for name, weight in self.weights.items():
            if not math.isfinite(weight) or weight < 0:
                raise ValueError(f"the weight of {name!r} must be a finite number of at least 0, found {weight}")
        for gate in self.gates:
            if not math.isfinite(gate.reward):
                raise ValueError(f"the gate on {gate.grader!r} must give a finite reward, found {gate.reward}")
        if self.range is not None and not (all(map(math.isfinite, self.range)) and self.range[0] <= self.range[1]):
            raise ValueError(f"range must be two finite numbers, the lower first, found {list(self.range)}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """`reward` is finite, or None; then `missing` names the graders whose score was needed (none: nothing counts).

    `gate` is the grader whose gate decided. `clipped` is what came out before `range` bounded it, when that differs.
    """

    reward: float | None
    missing: list[str] = field(default_factory=list)
    gate: str | None = None
    clipped: float | None = None


def combine(scores: Mapping[str, float | None], rule: RewardRule, required: Collection[str]) -> Verdict:
    """The reward of `scores`, None standing for a grader that could not speak.

    A required grader without a score means no reward, before any gate is looked at; an optional one is left out, and
    the weights of the others make the whole. Raises ValueError for a score that is not finite.
    """
    for name, score in scores.items():
        if score is not None and not math.isfinite(score):
            raise ValueError(f"the score of {name!r} must be finite, found {score}")
    missing = [name for name in required if scores.get(name) is None]
    if missing:
        return Verdict(None, sorted(missing, key=_place_in(scores)))
    for gate in rule.gates:
        looked_at = scores.get(gate.grader)
        if looked_at is not None and gate.closes(looked_at):
            return _bounded(gate.reward, rule, gate.grader)
    counted = {name: score for name, score in scores.items() if score is not None and name not in rule.measured}
    made = _COMBINE[rule.combine](counted, rule.weights) if counted else None
    if made is None:
        return Verdict(None, [name for name in scores if scores[name] is None and name not in rule.measured])
    return _bounded(made, rule, None)


def _place_in(scores: Mapping[str, float | None]) -> Callable[[str], tuple[int, str]]:
    order = {name: place for place, name in enumerate(scores)}
    return lambda name: (order.get(name, len(order)), name)


def _bounded(made: float, rule: RewardRule, gate: str | None) -> Verdict:
    made = min(max(made, -_LARGEST), _LARGEST)
    low, high = rule.range or (made, made)
    reward = min(max(made, low), high)
    return Verdict(reward, gate=gate, clipped=made if reward != made else None)


def _weighted_mean(scores: Mapping[str, float], weights: Mapping[str, float]) -> float | None:
    total = _sum([weights.get(name, 1.0) for name in scores])
    if total <= 0:
        return None
    # Shares before products: a mean cannot overflow where its scores do not.
    mean = _sum([score * (weights.get(name, 1.0) / total) for name, score in scores.items()])
    return min(max(mean, min(scores.values())), max(scores.values()))


def _weighted_sum(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return _sum([score * weights.get(name, 1.0) for name, score in scores.items()])


def _least(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return min(scores.values())


def _product(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    made = 1.0
    for score in scores.values():
        made = min(max(made * score, -_LARGEST), _LARGEST)
    return made


def _all(scores: Mapping[str, float], weights: Mapping[str, float]) -> float:
    return float(all(score >= _WHOLE for score in scores.values()))


def _sum(values: Sequence[float]) -> float:
    # Bounded first: infinity less infinity would be no number.
    bounded = [min(max(value, -_LARGEST), _LARGEST) for value in values]
    try:
        return math.fsum(bounded)
    except OverflowError:
        exact = sum(map(Fraction, bounded), Fraction(0))
        return float(min(max(exact, Fraction(-_LARGEST)), Fraction(_LARGEST)))


_COMBINE: Mapping[Combine, Callable[[Mapping[str, float], Mapping[str, float]], float | None]] = {
    "weighted_mean": _weighted_mean,
    "weighted_sum": _weighted_sum,
    "min": _least,
    "product": _product,
    "all": _all,
}
