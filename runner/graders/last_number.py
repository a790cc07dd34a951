"""The last number in a text: how a model that was asked for no format usually answers.

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


def _last_in(window: str) -> str | None:
    last: re.Match[str] | None = None
    if _DIGIT.search(window) is None:
        return None
    for pattern in (_NUMBER, _PLAIN):
        for found in pattern.finditer(window):
            if last is None or found.end() > last.end():
                last = found
    return last[0].strip() if last and len(last[0]) <= MAX_TEXT else None
