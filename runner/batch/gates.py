"""`[eval] gates`: does the run meet what the file demands.

A number that does not exist does not pass: a gate over nothing fails, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.batch.summary import metric


@dataclass(frozen=True, slots=True)
class Gate:
    """`min <= metric <= max`, on a `bound` of its interval: value, low (lower) or high (upper)."""

    metric: str
    bound: str = "value"
    min: float | None = None
    max: float | None = None


@dataclass(frozen=True, slots=True)
class GateResult:
    gate: Gate
    value: float | None
    passed: bool
    text: str

    def to_json(self) -> dict[str, Any]:
        gate = {"metric": self.gate.metric, "bound": self.gate.bound, "min": self.gate.min, "max": self.gate.max}
        return {**gate, "value": self.value, "passed": self.passed, "text": self.text}


def check_gates(gates: Sequence[Gate], summary: Mapping[str, Any]) -> list[GateResult]:
    """Each gate with what it found."""
    return [_check(gate, summary) for gate in gates]


def _check(gate: Gate, summary: Mapping[str, Any]) -> GateResult:
    try:
        value = metric(summary, gate.metric, gate.bound)
    except KeyError:
        return GateResult(gate, None, False, f"{gate.metric}: there is no such number")
    passed = value is not None and _within(value, gate)
    found = "has no value" if value is None else f"is {_number(value)}"
    return GateResult(gate, value, passed, f"{_name(gate)} {found}, must be {_demand(gate)}")


def _within(value: float, gate: Gate) -> bool:
    return (gate.min is None or value >= gate.min) and (gate.max is None or value <= gate.max)


def _name(gate: Gate) -> str:
    word = {"low": "the lower bound of ", "lower": "the lower bound of ", "high": "the upper bound of ",
            "upper": "the upper bound of "}.get(gate.bound, "")  # fmt: skip
    return f"{word}{gate.metric}"


def _demand(gate: Gate) -> str:
    parts = []
    if gate.min is not None:
        parts.append(f"at least {_number(gate.min)}")
    if gate.max is not None:
        parts.append(f"at most {_number(gate.max)}")
    return " and ".join(parts)


def _number(value: float) -> str:
    return f"{value:.4g}"
