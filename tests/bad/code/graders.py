"""Graders that the broken files name."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from runner.graders.grader import Grader, GraderContext

THRESHOLD = 0.5


def resolved(solution_str: str, ground_truth: str | None, extra_info: dict[str, Any]) -> float:
    return 1.0 if ground_truth and ground_truth in solution_str else 0.0


def compare(answer: str, reference: str) -> float:
    return float(answer == reference)


def close(solution_str: str, ground_truth: str | None, extra_info: dict[str, Any], *, tolerance: float) -> float:
    return float(abs(float(solution_str) - float(ground_truth or 0)) <= tolerance)


class LengthConfig(BaseModel):
    """How long an answer may be."""

    limit: int


class Length(Grader):
    """Short answers are good answers."""

    def __init__(self, config: LengthConfig) -> None:
        super().__init__(config)
        self.limit = config.limit

    async def grade(self, ctx: GraderContext) -> float:
        return float(len(ctx.output) <= self.limit)


class Half(Grader):
    """Leaves the grading to whoever inherits it."""


class Note:
    """Not a grader at all."""
