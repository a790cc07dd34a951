"""`LabelValues`: keeps the values of a metric's label a small set, whatever clients and models send.

Each value is a time series that a Prometheus server keeps for weeks: one that a stranger may choose is a leak.
"""

from __future__ import annotations

from collections.abc import Collection

OTHER = "other"


class LabelValues(dict[str, str]):
    """Values of one label: those `known`, or the first `most` that come up when none are; all else is `rest`.

    `values[value]` is what to count a value as.
    """

    def __init__(self, known: Collection[str] | None = None, *, most: int = 64, rest: str = OTHER) -> None:
        super().__init__({value: value for value in known or ()})
        self._room = most if known is None else 0
        self._rest = rest

    def __missing__(self, value: str) -> str:
        if self._room <= 0 or not value or len(value) > 100:
            return self._rest
        self._room -= 1
        self[value] = value
        return value
