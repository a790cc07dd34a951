"""How well a ticket was resolved."""

from __future__ import annotations

from typing import Any


def resolved(solution_str: str, ground_truth: str | None, extra_info: dict[str, Any]) -> float:
    """1.0 when the answer holds what the ticket asked for."""
    return 1.0 if ground_truth and ground_truth in solution_str else 0.0
