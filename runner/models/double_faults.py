"""The faults of the test double: which request goes wrong, and how, from one seeded sequence of numbers."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

KINDS = ("hang", "reset", "cut", "garbage", "empty")
"""Never an answer; the connection reset before one; half an answer; an HTML page with status 200; no choices."""


@dataclass(frozen=True, slots=True)
class Fault:
    """`kind` is one of KINDS or an HTTP status (as text); it strikes a request with probability `chance`."""

    kind: str
    chance: float


def parse_faults(text: str) -> list[Fault]:
    """`"429:0.1,hang:0.01"` as faults. Raises ValueError with a sentence."""
    faults = [_fault(part.strip()) for part in text.split(",") if part.strip()]
    total = sum(fault.chance for fault in faults)
    if total > 1.0 + 1e-9:
        raise ValueError(f"the chances of all faults together are {total:g}, more than 1")
    return faults


def _fault(part: str) -> Fault:
    kind, colon, chance = part.partition(":")
    if kind not in KINDS and not (kind.isdigit() and 400 <= int(kind) <= 599):
        raise ValueError(f"unknown fault `{kind}`: a status from 400 to 599, or one of {', '.join(KINDS)}")
    try:
        value = float(chance) if colon else 1.0
    except ValueError:
        raise ValueError(f"`{chance}` is not a probability (in `{part}`)") from None
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"`{chance}` is not a probability between 0 and 1 (in `{part}`)")
    return Fault(kind, value)


class Faults:
    """Says for each request, in order, which fault strikes it. The same seed, the same sequence."""

    def __init__(self, faults: list[Fault], seed: int) -> None:
        self._faults = faults
        self._rng = Random(seed)

    def next(self) -> str | None:
        """The kind of fault for the next request, or None."""
        if not self._faults:
            return None
        number = self._rng.random()
        for fault in self._faults:
            if number < fault.chance:
                return fault.kind
            number -= fault.chance
        return None
