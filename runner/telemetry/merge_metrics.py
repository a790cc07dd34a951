"""`merge`: the expositions of several workers as one, as if one process had counted everything.

Works on the text, line by line, in either format; what it reads is what `Metrics.text` writes: no time stamps and no
exemplars, so a sample's value is what follows its last space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

_LARGEST = ("_oldest_owed_seconds", "_p99_seconds", "_info")
"""Gauges of which the workers' largest counts; the others add up, because each worker tells its own share."""


@dataclass(slots=True)
class _Family:
    """One metric: its comment lines, and its samples in order."""

    head: list[str] = field(default_factory=list)
    samples: dict[str, float] = field(default_factory=dict)


def merge(texts: Sequence[bytes]) -> bytes:
    """Counters, histograms, and gauges of all `texts` added up. Raises ValueError for a line that is no sample.

    All texts must be of one format. A worker that has not counted a thing yet takes nothing away from it.
    """
    families: dict[str, _Family] = {}
    ended = False
    for text in texts:
        for name, line in _lines(text.decode()):
            if line == "# EOF":
                ended = True
                continue
            family = families.setdefault(name, _Family())
            if line.startswith("#"):
                if line not in family.head:
                    family.head.append(line)
                continue
            key, value = _sample(line)
            family.samples[key] = _rule(key)(family.samples[key], value) if key in family.samples else value
    lines = [line for family in families.values() for line in _told(family)]
    return "".join(f"{line}\n" for line in [*lines, *(["# EOF"] if ended else [])]).encode()


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Each line with the name of the family it stands in: that of the last HELP or TYPE."""
    name = ""
    for line in text.split("\n"):  # not splitlines: a label may hold a line separator of Unicode
        if line.startswith(("# HELP ", "# TYPE ", "# UNIT ")):
            name = line.split(" ", 3)[2]
        if line:
            yield name, line


def _sample(line: str) -> tuple[str, float]:
    key, gap, number = line.rpartition(" ")
    try:
        if gap:
            return key, float(number)
    except ValueError:
        pass
    raise ValueError(f"not a sample of an exposition: {line:.100}")


def _rule(key: str) -> Callable[[float, float], float]:
    name = key.partition("{")[0]
    return max if name.endswith(_LARGEST) else _add


def _add(one: float, other: float) -> float:
    return one + other


def _told(family: _Family) -> Iterator[str]:
    """A set of labels comes whole from the first worker that has it, so its buckets stay together and in order."""
    yield from family.head
    for key, value in family.samples.items():
        yield f"{key} {_number(value)}"


def _number(value: float) -> str:
    if value == float("inf"):
        return "+Inf"
    if value == float("-inf"):
        return "-Inf"
    return "NaN" if value != value else repr(value)
