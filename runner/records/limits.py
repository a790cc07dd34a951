"""What one rollout may use, as plain values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

LIMIT_REASONS = frozenset(
    {
        "max_turns",
        "max_steps",
        "max_tool_calls",
        "max_total_tokens",
        "max_cost",
        "max_tokens",
        "context_overflow",
        "malformed_calls",
    }
)
"""Stop reasons that are limits the policy itself ran into: `[limits] on_limit` decides what they are worth."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`[limits]` of one rollout. None is "no limit"; `time` is in seconds, `cost` in USD.

    `grade_time` bounds all graders together, in seconds; only a controller sets it. `tool_time` bounds one call of a
    tool that an agent framework runs by itself: those of the file have it, or a time-out of their own, already.

    `on_limit` is "score", "ungraded", or the fixed reward of a rollout that ran into a limit.
    """

    turns: int | None = None
    tool_calls: int | None = None
    total_tokens: int | None = None
    time: float | None = None
    cost: float | None = None
    malformed_calls: int | None = None
    grade_time: float | None = None
    tool_time: float | None = None
    on_limit: Literal["score", "ungraded"] | float = "score"

    def override(self, values: Mapping[str, Any]) -> Limits:
        """These limits with a controller's values in place.

        Raises KeyError for a limit that is not one, ValueError for a value that no limit can have.
        """
        if not values:
            return self
        known = {field.name for field in fields(self)}
        for name, value in values.items():
            if name not in known:
                raise KeyError(f"no limit is called {name!r}")
            if not _fits(name, value):
                raise ValueError(f"the limit {name!r} cannot be {value!r:.60}")
        return replace(self, **values)


def _fits(name: str, value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if name == "on_limit":
        return number or value in ("score", "ungraded")
    if value is None:
        return True
    return number and value >= 0 and (name in ("time", "grade_time", "tool_time", "cost") or isinstance(value, int))
