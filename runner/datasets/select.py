"""Which rows and in which order: `"3,7,10-20"`, and a shuffle that is the same on every Python.

Indices are places in the file, from 0.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass


class SelectionProblem(ValueError):
    """The text selects nothing. `offset` and `length` are characters inside it."""

    def __init__(self, message: str, offset: int, length: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.length = length


@dataclass(frozen=True, slots=True)
class Selection:
    """Indices as sorted ranges that do not touch: `starts[i]` to `ends[i]`, both inside."""

    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def __contains__(self, index: object) -> bool:
        if not isinstance(index, int):
            return False
        place = bisect_right(self.starts, index) - 1
        return place >= 0 and index <= self.ends[place]

    def __len__(self) -> int:
        return sum(end - start + 1 for start, end in zip(self.starts, self.ends, strict=True))

    def __iter__(self) -> Iterator[int]:
        for start, end in zip(self.starts, self.ends, strict=True):
            yield from range(start, end + 1)

    @property
    def last(self) -> int:
        """The highest index selected."""
        return self.ends[-1]

    def __str__(self) -> str:
        pairs = zip(self.starts, self.ends, strict=True)
        return ",".join(f"{start}" if start == end else f"{start}-{end}" for start, end in pairs)


_PART = re.compile(r"\s*([0-9]+)\s*(?:-\s*([0-9]+)\s*)?")


def parse_rows(text: str) -> Selection:
    """`"3,7,10-20"` as a selection; order and repetition do not matter. Raises `SelectionProblem`."""
    ranges = []
    offset = 0
    for part in text.split(","):
        ranges.append(_range(part, offset))
        offset += len(part) + 1
    return _merged(sorted(ranges))


def _range(part: str, offset: int) -> tuple[int, int]:
    found = _PART.fullmatch(part)
    start = offset + len(part) - len(part.lstrip())
    length = max(len(part.strip()), 1)
    if found is None:
        words = f"`{part.strip()}` is no row or range of rows" if part.strip() else "a row is missing here"
        raise SelectionProblem(
            f"{words}; write `3` or `10-20`, separated by commas", start if part.strip() else offset, length
        )
    if len(found[1]) > 15 or len(found[2] or "") > 15:
        raise SelectionProblem(f"`{part.strip()}` is far too large", start, length)
    low, high = int(found[1]), int(found[2] or found[1])
    if high < low:
        raise SelectionProblem(f"`{part.strip()}` runs backwards; write `{high}-{low}`", start, length)
    return low, high


def _merged(ranges: list[tuple[int, int]]) -> Selection:
    starts, ends = [ranges[0][0]], [ranges[0][1]]
    for low, high in ranges[1:]:
        if low <= ends[-1] + 1:
            ends[-1] = max(ends[-1], high)
        else:
            starts.append(low)
            ends.append(high)
    return Selection(tuple(starts), tuple(ends))


def shuffle(indices: array[int], seed: int, limit: int | None = None) -> array[int]:
    """The first `limit` of a random order of `indices`, which is changed in place.

    Fisher and Yates from the front, each draw by rejection from `random.Random(seed).getrandbits`: the Mersenne
    twister's bits are the same on every Python, what `random.shuffle` makes of them is not promised. Drawing from the
    front makes a smaller `limit` a prefix of a larger one.
    """
    from random import Random

    bits = Random(seed).getrandbits
    count = len(indices)
    wanted = count if limit is None else min(limit, count)
    for place in range(min(wanted, count - 1)):
        left = count - place
        width = (left - 1).bit_length()
        draw = bits(width)
        while draw >= left:
            draw = bits(width)
        indices[place], indices[place + draw] = indices[place + draw], indices[place]
    return indices[:wanted]
