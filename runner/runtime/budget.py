"""What one rollout may spend, and the only clock it is measured by."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeAlias

from runner.records.completion import Completion, Usage
from runner.records.failure import LimitReached, WorkflowError
from runner.records.limits import Limits

Clock: TypeAlias = Callable[[], float]

_MENDABLE = frozenset({"context_overflow", "max_tokens"})
"""Limits that one answer ran into, not the rollout: a shorter conversation or another answer gets past them."""


class Budget:
    """Counts turns, tool calls, tokens, cost and time of one rollout; raises `LimitReached` before the next spend.

    A limit that fired is kept in `tripped`: a workflow that swallows the exception does not get round it. Only what a
    further answer mends may be followed by one: a conversation that was too long, an answer that was cut off.
    """

    __slots__ = ("clock", "cost", "limits", "malformed", "started", "tool_calls", "tripped", "turns", "usage")

    def __init__(self, limits: Limits, clock: Clock = time.monotonic, started: float | None = None) -> None:
        self.limits = limits
        self.clock = clock
        self.started = clock() if started is None else started
        self.turns = 0
        self.tool_calls = 0
        self.malformed = 0
        self.usage = Usage()
        self.cost: float | None = None
        self.tripped: LimitReached | None = None

    def elapsed(self) -> float:
        """Seconds since the rollout was admitted."""
        return self.clock() - self.started

    def remaining(self) -> float | None:
        """Seconds left of `[limits] time`, never negative; None without such a limit."""
        if self.limits.time is None:
            return None
        return max(0.0, self.limits.time - self.elapsed())

    def expired(self) -> bool:
        """Whether `[limits] time` is over."""
        return self.limits.time is not None and self.elapsed() > self.limits.time

    def timed_out(self, more: str = "") -> WorkflowError:
        """What ends a rollout whose time is over: it had no fair chance, so this is no limit of the policy."""
        return WorkflowError(
            f"not finished within `[limits] time` of {self.limits.time:g} s, in turn {self.turns}{more}",
            kind="rollout_timeout",
        )

    def begin_turn(self) -> int:
        """Enter the next turn and return its number from 1. Raises `LimitReached`."""
        if self.tripped is not None and self.spent:
            raise self.tripped
        limits = self.limits
        if limits.turns is not None and self.turns >= limits.turns:
            raise self.trip("max_turns", f"the limit of {limits.turns} turns is reached")
        if limits.total_tokens is not None and self.usage.total_tokens >= limits.total_tokens:
            raise self.trip(
                "max_total_tokens", f"{self.usage.total_tokens} tokens used, the limit is {limits.total_tokens}"
            )
        if limits.cost is not None and self.cost is not None and self.cost >= limits.cost:
            raise self.trip("max_cost", f"{self.cost:.6f} USD spent, the limit is {limits.cost} USD")
        self.turns += 1
        return self.turns

    def spend(self, completion: Completion) -> None:
        """Count what a completion cost."""
        if completion.usage is not None:
            self.usage = self.usage + completion.usage
        if completion.cost is not None:
            self.cost = (self.cost or 0.0) + completion.cost

    def begin_tools(self, count: int) -> None:
        """Enter a batch of tool calls. Raises `LimitReached` when they do not all fit: then none of them runs."""
        if self.tripped is not None and self.spent:
            raise self.tripped
        limit = self.limits.tool_calls
        if limit is not None and self.tool_calls + count > limit:
            raise self.trip("max_tool_calls", f"{count} more tool calls after {self.tool_calls}, the limit is {limit}")
        self.tool_calls += count

    def count_malformed(self, count: int) -> None:
        """Count calls whose name or arguments were wrong. Raises `LimitReached` when there were too many."""
        self.malformed += count
        limit = self.limits.malformed_calls
        if count and limit is not None and self.malformed >= limit:
            raise self.trip("malformed_calls", f"{self.malformed} malformed tool calls, the limit is {limit}")

    @property
    def spent(self) -> bool:
        """Whether a limit fired that leaves nothing to be asked."""
        return self.tripped is not None and self.tripped.kind not in _MENDABLE

    def mend(self) -> None:
        """Forget a limit that an answer has mended."""
        if not self.spent:
            self.tripped = None

    def trip(self, kind: str, message: str) -> LimitReached:
        """Note that a limit fired, and return the exception to raise."""
        if self.tripped is None or not self.spent:
            self.tripped = LimitReached(message, kind=kind)
        return self.tripped
