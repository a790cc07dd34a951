"""`Criterion`: one question a rubric asks, what may be answered, and how answers become a number from 0 to 1."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from runner.graders.grader import GraderMisfit
from runner.records.quick import quick


@quick
class Criterion:
    """`text` is what the judge decides, on a scale by `type`.

    `binary` is true or false, `likert` 1 to `levels`, `numeric` `min` to `max`.
    """

    id: str
    text: str
    type: Literal["binary", "likert", "numeric"] = "binary"
    levels: int | None = None
    """Default: 5."""
    min: float | None = None
    """Default: 0."""
    max: float | None = None
    """Default: 1."""
    weight: float = 1.0

    @property
    def bounds(self) -> tuple[float, float]:
        """The worst and the best that may be said on a likert or numeric scale."""
        if self.type == "likert":
            return 1, 5 if self.levels is None else self.levels
        return 0.0 if self.min is None else self.min, 1.0 if self.max is None else self.max

    def scale(self) -> str:
        """What the judge may answer, in words."""
        if self.type == "binary":
            return "true or false"
        low, high = self.bounds
        kind = "whole number" if self.type == "likert" else "number"
        return f"a {kind} from {low:g} (worst) to {high:g} (best)"

    def value_of(self, said: Any) -> float | None:
        """`said` scaled to 0...1; None when it is not on the scale. Strict: "yes" is not true, and true is not 1."""
        if self.type == "binary":
            return float(said) if isinstance(said, bool) else None
        if isinstance(said, bool) or not isinstance(said, int | float) or not math.isfinite(said):
            return None
        low, high = self.bounds
        if not low <= said <= high or (self.type == "likert" and said != int(said)):
            return None
        return (said - low) / (high - low)


@quick
class Opinion:
    """What one vote said on one criterion, that scaled to 0...1, and why."""

    said: bool | int | float
    value: float
    reason: str


def agree(criterion: Criterion, opinions: Sequence[Opinion]) -> tuple[float, float]:
    """The value of several opinions, and the share of them that said the commonest thing."""
    values = [opinion.value for opinion in opinions]
    agreement = Counter(values).most_common(1)[0][1] / len(values)
    mean = math.fsum(values) / len(values)
    if criterion.type != "binary":
        return mean, agreement
    return (1.0 if mean > 0.5 else 0.0 if mean < 0.5 else 0.5), agreement


def checked(criteria: Sequence[Criterion], votes: int) -> tuple[Criterion, ...]:
    """`criteria`, when a rubric can ask them. Raises `GraderMisfit`."""
    if not criteria:
        raise GraderMisfit("a rubric needs at least one criterion")
    if votes < 1:
        raise GraderMisfit(f"votes must be at least 1, found {votes}")
    twice = [name for name, count in Counter(each.id for each in criteria).items() if count > 1]
    if twice:
        raise GraderMisfit(f"criteria must have different ids, found {twice[0]!r} twice")
    for each in criteria:
        if not (math.isfinite(each.weight) and each.weight > 0):
            raise GraderMisfit(f"criterion {each.id!r}: weight must be a finite number above 0, found {each.weight}")
        low, high = each.bounds
        if each.type == "likert" and high < 2:
            raise GraderMisfit(f"criterion {each.id!r}: levels must be at least 2, found {high:g}")
        if each.type == "numeric" and not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise GraderMisfit(f"criterion {each.id!r}: min must be below max, found {low:g} and {high:g}")
    return tuple(criteria)
