"""Graders that the broken files name."""

from __future__ import annotations

from typing import Any

THRESHOLD = 0.5


def resolved(solution_str: str, ground_truth: str | None, extra_info: dict[str, Any]) -> float:
    return 1.0 if ground_truth and ground_truth in solution_str else 0.0


def compare(answer: str, reference: str) -> float:
    return float(answer == reference)


def close(solution_str: str, ground_truth: str | None, extra_info: dict[str, Any], *, tolerance: float) -> float:
    return float(abs(float(solution_str) - float(ground_truth or 0)) <= tolerance)
