"""The reference answer, or a sentence that says what to do about its absence.

An expectation is a callable from the grader's context to text: templates are rendered elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from runner.graders.grader import GraderContext
from runner.records.failure import NoLabel

Expect: TypeAlias = Callable[[GraderContext], str]
"""Gives the text that a grader compares with. Raises `NoLabel` when it needs a label that is not there."""


def require_label(ctx: GraderContext) -> str:
    """The label of this rollout. Raises `NoLabel` when it is None or blank."""
    if ctx.label is None or not ctx.label.strip():
        state = "has no label" if ctx.label is None else "has a blank label"
        raise NoLabel(
            f"the row {state}, and this grader compares with it: fill the row's ground_truth column, point "
            "[workflow] label or [dataset] columns at the column that holds the answer, or drop the row"
        )
    return ctx.label
