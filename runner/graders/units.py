"""Units after a number: read leniently, so that "18 dollars a day" is 18, and compared only when both sides have one.

There is no conversion: `5 km` is not `5000 m`. A row that wants conversion wants its own grader.
"""

from __future__ import annotations

import re

from runner.records.quick import quick

_SAME = {
    "usd": "$ us$ usd dollar dollars buck bucks",
    "eur": "€ eur euro euros",
    "gbp": "£ gbp pound-sterling",
    "jpy": "¥ jpy yen",
    "inr": "₹ inr rs rupee rupees",
    "cny": "cny rmb yuan",
    "cent": "¢ cent cents",
    "m": "m meter meters metre metres",
    "km": "km kms kilometer kilometers kilometre kilometres",
    "cm": "cm centimeter centimeters centimetre centimetres",
    "mm": "mm millimeter millimeters millimetre millimetres",
    "mile": "mi mile miles",
    "foot": "ft foot feet",
    "inch": "in inch inches",
    "yard": "yd yard yards",
    "g": "g gram grams gramme grammes",
    "kg": "kg kgs kilogram kilograms kilo kilos",
    "mg": "mg milligram milligrams",
    "pound": "lb lbs pound pounds",
    "ounce": "oz ounce ounces",
    "l": "l liter liters litre litres",
    "ml": "ml milliliter milliliters millilitre millilitres",
    "second": "s sec secs second seconds",
    "minute": "min mins minute minutes",
    "hour": "h hr hrs hour hours",
    "day": "day days",
    "week": "week weeks wk wks",
    "month": "month months",
    "year": "yr yrs year years",
    "degree": "° deg degs degree degrees",
    "mph": "mph",
    "kmh": "kmh kph",
}
_KNOWN = {word: name for name, words in _SAME.items() for word in words.split()}
_NAMES = frozenset(_SAME) | {"per"}
# After a number these words make another number, an alternative, or an expression: not a unit.
_EXPRESSION = (
    "or and not nor to minus plus times divided over mod pi e i x y z n k t b c sqrt root sin cos tan log ln exp"
)
_AMOUNTS = "thousand million billion trillion hundred half quarter third squared cubed factorial but except am pm"
_NOT_UNITS = frozenset(f"{_EXPRESSION} {_AMOUNTS}".split())
_WORD = re.compile(r"[^\W\d_²³]+|[°$€£¥₹¢]")
_POWER = re.compile(r"\s*\^?\s*(?:\{\s*(-?\d)\s*\}|(?<=\^)(-?\d)|([²³]))")
_JOINT = re.compile(r"[\s./·×*'’()-]*")
_SUPERSCRIPT = re.compile(r"[\u2070-\u209f²³¹]")
_GREEK = re.compile(r"[\u0370-\u03ff]")
_MAX_WORDS = 6


@quick
class Unit:
    """A unit: its canonical `name`, whether it is one we know, and whether it must be on both sides to count.

    `strict` is set for unknown letters right after the digits: `2x` is an expression, whatever else `2 x` may be.
    """

    name: str
    known: bool = False
    strict: bool = False


def read_unit(text: str, attached: bool = False) -> Unit | None:
    """Read the whole of `text` as a unit: up to six words, with powers and slashes. None if it is not one."""
    words: list[str] = []
    position = 0
    text = text.strip()
    while position < len(text) and len(words) <= _MAX_WORDS:
        word = _WORD.match(text, position)
        if word is None or _GREEK.search(word[0]) or _SUPERSCRIPT.search(word[0]):
            return None
        position = word.end()
        power = _POWER.match(text, position)
        position = power.end() if power else position
        words.append(_canonical(word[0]) + (_exponent(power) if power else ""))
        joint = _JOINT.match(text, position)
        position = joint.end() if joint else position
        if joint and "/" in joint[0]:
            words.append("per")
    if position < len(text) or not words or len(words) > _MAX_WORDS:
        return None
    return _unit(words, attached)


def _exponent(power: re.Match[str]) -> str:
    digit = power[1] or power[2] or {"²": "2", "³": "3"}[power[3]]
    return f"^{digit}"


def _unit(words: list[str], attached: bool) -> Unit | None:
    known = all(word.partition("^")[0] in _NAMES for word in words)
    loose = [word.partition("^")[0] for word in words]
    if any(word in _NOT_UNITS for word in loose) or (len(loose[0]) == 1 and loose[0] not in _NAMES):
        # Right after the digits it may still equal itself: "2x" is "2x".
        return Unit(" ".join(words), strict=True) if attached and len(words) == 1 else None
    return Unit(" ".join(words), known=known, strict=attached and (not known or len(loose[0]) == 1))


def _canonical(word: str) -> str:
    lower = word.lower()
    if lower in _KNOWN:
        return _KNOWN[lower]
    return lower[:-1] if len(lower) > 3 and lower.endswith("s") and not lower.endswith("ss") else lower


def compatible(one: Unit | None, other: Unit | None) -> bool:
    """Whether two units may stand for the same thing. A missing unit goes with every one that is not strict."""
    if one is None or other is None:
        return not any(unit.strict for unit in (one, other) if unit is not None)
    if one.name == other.name:
        return True
    if one.strict or other.strict:
        return False
    if one.known or other.known:
        return _money_of(one) == _money_of(other) != "" or _says_more(one, other) or _says_more(other, one)
    return bool(set(one.name.split()) & set(other.name.split()))


def _says_more(unit: Unit, than: Unit) -> bool:
    """Whether `unit` goes on with words where `than` ends, as "hours a day" does. "km per hour" is another unit."""
    words, start = unit.name.split(), than.name.split()
    return len(words) > len(start) and words[: len(start)] == start and words[len(start)] != "per"


def _money_of(unit: Unit) -> str:
    """The currency that a unit such as "dollars a day" starts with, or nothing."""
    first = unit.name.split()[0]
    return first if first in ("usd", "eur", "gbp", "jpy", "inr", "cny") else ""
