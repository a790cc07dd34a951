"""`[reward]`: how the scores of the graders become the one reward."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runner.config.section import Array, Section


class RewardGate(Section):
    """A condition on one score that replaces the reward. Exactly one of `below` and `above`."""

    grader: str
    """Whose score is looked at."""
    below: float | None = None
    """The gate closes when the score is less than this."""
    above: float | None = None
    """The gate closes when the score is more than this."""
    reward: float = 0.0
    """The reward a closed gate gives."""


class RewardSection(Section):
    """How the scores of the graders become the one reward."""

    combine: Literal["weighted_mean", "weighted_sum", "min", "product", "all"] = "weighted_mean"
    """`weighted_mean`, `weighted_sum`, `min`, `product`, or `all` (1.0 if every score is at least 1, else 0.0).
    Default: `weighted_mean`, which stays in the range of the scores."""
    weights: dict[str, Annotated[float, Field(ge=0)]] = Field(default_factory=dict)
    """How much each grader counts. Default: 1.0 for each that is not named here and not `measured`."""
    measured: Array[str] = ()
    """Graders that are reported and never part of the reward."""
    gates: Array[RewardGate] = ()
    """Conditions that replace the reward; the first that closes decides."""
    range: Annotated[tuple[float, float], Field(strict=False)] | None = None
    """The bounds `[low, high]` the reward is clipped to. Default: none."""
