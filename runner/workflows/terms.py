"""`Terms`: on what terms a rollout is played."""

from __future__ import annotations

from dataclasses import field

from runner.records.completion import Sampling
from runner.records.limits import Limits
from runner.records.quick import quick


@quick
class Terms:
    """How a rollout samples and what it may use, overrides of its controller included.

    `label` is only there for the first generation's loops, whose metadata have always held it.
    """

    sampling: Sampling = field(default_factory=Sampling)
    limits: Limits = field(default_factory=Limits)
    label: str | None = field(default=None, repr=False)
