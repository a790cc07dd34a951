"""Numbers as people write them: read into exact fractions, and compared.

Nothing here touches a float, evaluates an expression, or does work that grows with the size of a number: what is too
long or too large is simply not a number. `latex.py` takes the typesetting off first.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

from runner.graders.latex import plain
from runner.graders.units import Unit, compatible, read_unit
from runner.records.quick import quick

MAX_TEXT = 1_000
"""Longer texts are not numbers."""
MAX_EXPONENT = 400
"""Larger powers of ten are not numbers: nobody writes them, and their digits would fill memory."""

ROUNDING = Fraction(1, 10**6)
"""A relative difference that only the rounding of a printed number makes."""


@quick
class Number:
    """A number exactly as written: `50%` is the value 50 with `percent` set."""

    value: Fraction
    percent: bool = False
    unit: Unit | None = None


_CURRENCY = r"(?:US\$|R\$|A\$|C\$|[$€£¥₹₩]|(?:USD|EUR|GBP|JPY|INR|CNY)\b|Rs\.?(?=\s*\d))"
_SIGN = r"[-+]"
_PREFIX = re.compile(
    rf"(?:(?:[A-Za-z]\s*)?=\s*)?(?:[≈~]\s*)?(?P<sign>{_SIGN})?\s*(?P<money>{_CURRENCY})?\s*(?P<inner>{_SIGN})?\s*"
)

# Separators in one number are all alike, and a lone dot is a decimal point; `1,5` and `0,5` could be two numbers.
_ENGLISH = r"\d{1,3}(?:,\d{3})+(?:\.\d*)?(?![\d,])"
_INDIAN = r"\d{1,2}(?:,\d{2})+,\d{3}(?:\.\d+)?(?![\d,])"
_CONTINENTAL = r"(?:\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,})(?![\d.,])"
_SPACED = r"\d{1,3}(?:(?P<gap>[ '’_])\d{3})(?:(?P=gap)\d{3})*(?:[.,]\d+)?(?![\d.,/]|[ '’_]\d|\s+/)"
_REPEATING = r"\d*\.\d*(?:\(\d+\)|\\overline\{?\d+\}?)"
_DECIMAL = r"(?:\d+(?:\.\d*)?|\.\d+)(?!\d)"
_DIGITS = re.compile(
    rf"(?P<english>{_ENGLISH})|(?P<indian>{_INDIAN})|(?P<continental>{_CONTINENTAL})|(?P<spaced>{_SPACED})"
    rf"|(?P<repeating>{_REPEATING})|(?P<decimal>{_DECIMAL})"
)
_MIXED = re.compile(r"(\d+)(?:\s+|\s*\+\s*)(\d+)\s*/\s*(\d+)(?![\d.,/])")
_OVER = re.compile(r"\s*/\s*(\d+(?:\.\d+)?)(?![\d,/]|\.\d)")
_POWER = re.compile(
    r"\s*(?:\*|×|·|[xX])\s*10\s*(?:\^|\*\*)\s*"
    r"(?:\{\s*([-+]?\d{1,6})\s*\}|\(\s*([-+]?\d{1,6})\s*\)|([-+]?\d{1,6})(?!\d))"
)
_BARE_POWER = re.compile(r"10\s*\^\s*(?:\{\s*([-+]?\d{1,6})\s*\}|([-+]?\d{1,6}))(?!\d)")
_EXPONENT = re.compile(r"[eE]([-+]?\d{1,6})(?!\d)")
_SCALE = re.compile(r"\s*(thousand|million|billion|trillion)s?\b", re.IGNORECASE)
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_PERCENT = re.compile(r"\s*(?:%|percent(?:age)?(?: points?)?\b|per cent\b)", re.IGNORECASE)


def parse_number(text: str) -> Number | None:
    """Read the whole of `text` as one number, with its sign, currency, percent sign and unit. None if it is not one.

    A lone comma or dot is read as English has it: `1,234` is a thousand and more, `1.234` is one and a bit.
    `1,234.50`, `$1 234`, `1.234.567,8`, `-3/4`, `1 1/2`, `\\frac{3}{4}`, `50\\%`, `3.2 × 10^5`, `2.5e-3`, `5 km/h`,
    `x = 5`, `**18**.` are numbers. `1,5`, `3 or 4`, `2+2`, `5:30`, `2x`, `1e999999999` are not.
    """
    if len(text) > MAX_TEXT:
        return None
    rest = plain(text)
    prefix = _PREFIX.match(rest)
    if prefix is None or (prefix["sign"] and prefix["inner"]):
        return None
    negative = "-" in (prefix["sign"], prefix["inner"])
    found = _magnitude(rest, prefix.end())
    if found is None:
        return None
    value, end = found
    number = _suffix(-value if negative else value, rest[end:])
    if number is None or not prefix["money"]:
        return number
    # "$5 per week": what it is money for does not matter, which money does.
    return replace(number, unit=read_unit(prefix["money"].rstrip(".")))


def _magnitude(text: str, start: int) -> tuple[Fraction, int] | None:
    if bare := _BARE_POWER.match(text, start):
        return _scaled(Fraction(1), int(bare[1] or bare[2]), bare.end())
    if mixed := _MIXED.match(text, start):
        return _mixed(mixed)
    digits = _DIGITS.match(text, start)
    if digits is None:
        return None
    value, end = _digits(digits), digits.end()
    if over := _OVER.match(text, end):
        return _divided(value, over)
    if exponent := _EXPONENT.match(text, end):
        return _scaled(value, int(exponent[1]), exponent.end())
    if power := _POWER.match(text, end):
        return _scaled(value, int(power[1] or power[2] or power[3]), power.end())
    if scale := _SCALE.match(text, end):
        return value * _SCALES[scale[1].lower()], scale.end()
    return value, end


def _digits(found: re.Match[str]) -> Fraction:
    kind, text = found.lastgroup, found[0]
    if kind == "repeating":
        return _repeating(text)
    if kind == "continental":
        text = text.replace(".", "").replace(",", ".")
    elif kind == "spaced":
        text = re.sub(r"[ '’_]", "", text).replace(",", ".")
    else:
        text = text.replace(",", "")
    return Fraction(f"0{text}".rstrip("."))


def _repeating(text: str) -> Fraction:
    fixed, _, cycle = text.partition("(") if "(" in text else text.partition("\\overline")
    cycle = cycle.strip("{})")
    whole, _, decimals = fixed.partition(".")
    shift = 10 ** len(decimals)
    tail = Fraction(int(cycle), (10 ** len(cycle) - 1) * shift)
    return Fraction(int(whole or "0")) + Fraction(int(decimals or "0"), shift) + tail


def _mixed(found: re.Match[str]) -> tuple[Fraction, int] | None:
    whole, over, under = (int(part) for part in found.groups())
    # "1 234/500" may be 1234/500 or 1 + 234/500.
    grouped = len(found[2]) == 3 and len(found[1]) <= 3
    if under == 0 or over >= under or grouped:
        return None
    return whole + Fraction(over, under), found.end()


def _divided(value: Fraction, found: re.Match[str]) -> tuple[Fraction, int] | None:
    under = Fraction(found[1])
    return (value / under, found.end()) if under else None


def _scaled(value: Fraction, exponent: int, end: int) -> tuple[Fraction, int] | None:
    if abs(exponent) > MAX_EXPONENT:
        return None
    return value * Fraction(10) ** exponent, end


def _suffix(value: Fraction, rest: str) -> Number | None:
    if percent := _PERCENT.match(rest):
        after = rest[percent.end() :].strip()
        return Number(value, percent=True) if not after or read_unit(after, attached=False) else None
    if not rest.strip():
        return Number(value)
    unit = read_unit(rest.strip(), attached=not rest[0].isspace())
    return Number(value, unit=unit) if unit else None


def same_number(label: Number, answer: Number, tolerance: Fraction = Fraction(0)) -> bool:
    """Whether the two are equal, or differ by at most `tolerance`, relative to the label.

    A tolerance up to `ROUNDING` is for printed decimals: whole numbers are not rounded, and stay exact.
    Units count only when both have one: `5 km` is `5`, and is not `5 kg`. When just one of them is a percentage the
    question, which is not seen here, decides what was meant: `50%` is both `50` and `0.5`.
    """
    if not compatible(label.unit, answer.unit):
        return False
    if label.percent == answer.percent:
        return _close(label.value, answer.value, tolerance)
    if label.percent:
        return any(_close(value, answer.value, tolerance) for value in (label.value, label.value / 100))
    return any(_close(label.value, value, tolerance) for value in (answer.value, answer.value / 100))


def _close(label: Fraction, answer: Fraction, tolerance: Fraction) -> bool:
    if label == answer:
        return True
    whole = label.denominator == answer.denominator == 1
    return not (whole and tolerance <= ROUNDING) and abs(label - answer) <= tolerance * abs(label)
