"""The last or first number in a text: how a model that was asked for no format usually answers.

What is found is text; `number.py` reads it. The patterns have no nested choices, and only ever see a window.
"""

from __future__ import annotations

import re

from runner.graders.number import MAX_TEXT

_DIGITS = r"(?:\d{1,3}(?:,\d{3})+(?![\d])|\d{1,3}(?:[\u00a0\u2009\u202f]\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+"
_NUMBER = re.compile(
    r"(?<![\w.,)\]])(?:[-+−]\s?)?(?:\\?\$|[€£¥₹])?\s?(?:[-−])?"  # a sign counts when nothing is before it to subtract
    rf"(?:\\[dt]?frac\s?\{{-?\d+\}}\s?\{{\d+\}}|(?:{_DIGITS}))"
    r"(?:\s?/\s?\d+|\s\d+/\d+|\s?\\[dt]?frac\s?\{\d+\}\s?\{\d+\})?"
    r"(?:[eE][-+]?\d+|\s?(?:\\times|\\cdot|×|\*|x)\s?10\s?\^\s?(?:\{-?\d+\}|-?\d+))?"
    r"(?:\s?\\?%|\s(?:percent|million|billion|trillion)\b)?"
)
_PLAIN = re.compile(rf"(?<![\w.])(?:{_DIGITS})(?:\s?/\s?\d+)?(?:\s?\\?%)?")
_DIGIT = re.compile(r"\d")
_WINDOW = 4 * MAX_TEXT


def last_number(text: str) -> str | None:
    """The last number in a text, as it is written there. None when there is none.

    Read from the end, a window at a time: a model that counted to a million costs no more than one that did not.
    """
    end = len(text)
    while end > 0:
        start = max(0, end - _WINDOW)
        if (found := _last_in(text[start:end])) is not None:
            return found
        # The next window overlaps by what a number may measure, so that none is cut in two.
        end = start + MAX_TEXT if start else 0
    return None


def first_number(text: str) -> str | None:
    """The first number in a text, as it is written there. None when there is none."""
    start = 0
    while (digit := _DIGIT.search(text, start)) is not None:
        window = text[max(0, digit.start() - 20) : digit.start() + _WINDOW]
        found = min(_all_in(window), key=_start, default=None)
        if found is not None:
            return found[0].strip()
        start = digit.start() + _WINDOW - MAX_TEXT
    return None


def _last_in(window: str) -> str | None:
    found = max(_all_in(window), key=_end, default=None)
    return found[0].strip() if found else None


def _all_in(window: str) -> list[re.Match[str]]:
    if _DIGIT.search(window) is None:
        return []
    # The first pattern knows signs and powers, and wins where both end alike.
    found = (match for pattern in (_NUMBER, _PLAIN) for match in pattern.finditer(window))
    return [match for match in found if len(match[0]) <= MAX_TEXT]


def _start(match: re.Match[str]) -> int:
    return match.start()


def _end(match: re.Match[str]) -> int:
    return match.end()
