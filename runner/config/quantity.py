"""Durations, money and sizes: text with a unit in the file, plain numbers in the config.

A bare number is refused, because nobody can tell what it counts; the message shows the likely spelling.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from runner.records.quick import quick

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_NUMBER = r"\d+(?:\.\d+)?"
DURATION_PATTERN = rf"^(?:{_NUMBER}(?:ms|s|m|h|d))+$"
MONEY_PATTERN = rf"^(?:{_NUMBER} ?USD|\${_NUMBER})$"
_BYTES = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}
SIZE_PATTERN = rf"^{_NUMBER} ?(?:{'|'.join(_BYTES)})$"


@quick
class Unit:
    """Marks a field as a quantity: "duration", "money" or "size"."""

    name: str


def parse_duration(text: str) -> float | None:
    """Seconds, or None when `text` is no duration: `"90s"`, `"250ms"`, `"1h30m"`."""
    if not re.fullmatch(DURATION_PATTERN[1:-1], text):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in re.findall(rf"({_NUMBER})(ms|s|m|h|d)", text))


def parse_money(text: str) -> float | None:
    """US dollars, or None when `text` is no amount: `"0.25 USD"`, `"$5"`."""
    if not re.fullmatch(MONEY_PATTERN[1:-1], text):
        return None
    return float(text.replace("USD", "").replace("$", ""))


def parse_size(text: str) -> int | None:
    """Bytes, or None when `text` is no size: `"64MiB"`, `"2MB"`. A part of a byte is dropped."""
    found = re.fullmatch(rf"({_NUMBER}) ?([A-Za-z]+)", text)
    if found is None or found[2] not in _BYTES:
        return None
    whole, _, part = found[1].partition(".")
    # In whole numbers, because a float loses bytes from 8 PiB on, and is infinite at 400 digits.
    size: int = int(whole + part) * _BYTES[found[2]] // 10 ** len(part)
    return size


def duration_text(seconds: float) -> str:
    """The shortest way to write a duration: 5400 is `1h30m`, 0.25 is `250ms`."""
    if seconds < 1 or seconds != int(seconds):
        return f"{seconds * 1000:g}ms" if seconds < 1 else f"{seconds:g}s"
    rest, parts = int(seconds), ""
    for unit in ("h", "m", "s"):
        count, rest = divmod(rest, int(_SECONDS[unit]))
        parts += f"{count}{unit}" if count else ""
    return parts or "0s"


def money_text(dollars: float) -> str:
    """An amount as the file writes it: `0.25 USD`."""
    return f"{dollars:g} USD"


def size_text(size: int) -> str:
    """The shortest exact way to write a size: 67108864 is `64MiB`, 2000000 is `2MB`, 1500 is `1500B`."""
    for unit in ("TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB"):
        if size and size % _BYTES[unit] == 0:
            return f"{size // _BYTES[unit]}{unit}"
    return f"{size}B"


_WORDS = {"sec": "s", "second": "s", "min": "m", "minute": "m", "hour": "h", "day": "d"}


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refuse(what: str, value: Any, unit: str, example: str) -> PydanticCustomError:
    """The error every quantity raises; `load` makes its words from the context."""
    meant = _meant(value, unit)
    cure = f'write a unit: `"{meant}"`' if meant else f'for example `"{example}"`'
    return PydanticCustomError("quantity", "{what}", {"what": what, "cure": cure, "bare": _number(value)})


def _meant(value: Any, unit: str) -> str | None:
    """How `value` was probably meant: with the unit put on, its word shortened, or without stray spaces."""
    if unit == "B":
        return _meant_size(value)
    bare = value.replace(" ", "") if isinstance(value, str) else f"{value:g}" if _number(value) else ""
    if re.fullmatch(_NUMBER, bare):
        return bare + unit
    worded = re.fullmatch(rf"({_NUMBER})([a-z]+?)s?", bare)
    if worded and unit == "s" and worded[2] in _WORDS:
        return worded[1] + _WORDS[worded[2]]
    return bare if unit == "s" and parse_duration(bare) is not None else None


def _meant_size(value: Any) -> str | None:
    """`64M`, `1mb` and a bare number of bytes as a size."""
    if isinstance(value, int) and not isinstance(value, bool):
        return size_text(value) if value > 0 else None
    bare = value.replace(" ", "") if isinstance(value, str) else ""
    found = re.fullmatch(rf"({_NUMBER})([A-Za-z]?)(i?)[Bb]?", bare)
    if found is None or found[2].lower() not in ("", "b", "k", "m", "g", "t"):
        return None
    letter = found[2].upper().replace("B", "")
    decimal = bare[-1:] in ("b", "B") and not found[3]
    return found[1] + (f"{letter}{'' if decimal else 'i'}B" if letter else "B")


def _zero_or_more(value: Any) -> Any:
    parsed = parse_duration(value) if isinstance(value, str) else None
    if parsed is None:
        if isinstance(value, str) and value.startswith("-") and parse_duration(value[1:]) is not None:
            raise PydanticCustomError("too_small", "longer than 0s", {"bound": "longer than 0s"})
        raise _refuse("a duration", value, "s", "90s")
    return parsed


def _positive(value: Any) -> Any:
    seconds = _zero_or_more(value)
    if seconds <= 0:
        raise PydanticCustomError("too_small", "longer than 0s", {"bound": "longer than 0s"})
    return seconds


def _dollars(value: Any) -> Any:
    parsed = parse_money(value) if isinstance(value, str) else None
    if parsed is None:
        raise _refuse("an amount of money", value, " USD", "0.25 USD")
    if parsed <= 0:
        raise PydanticCustomError("too_small", "more than 0 USD", {"bound": "more than 0 USD"})
    return parsed


def _bytes(value: Any) -> Any:
    parsed = parse_size(value) if isinstance(value, str) else None
    if parsed is None:
        raise _refuse("a size", value, "B", "64MiB")
    if parsed <= 0:
        raise PydanticCustomError("too_small", "more than 0B", {"bound": "more than 0B"})
    return parsed


def _schema(pattern: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": list(examples)})


_DURATION_SCHEMA = _schema(DURATION_PATTERN, "90s", "5m", "250ms", "1h30m")

Seconds = Annotated[float, BeforeValidator(_positive), _DURATION_SCHEMA, Unit("duration")]
"""A duration above zero, in seconds."""

Delay = Annotated[float, BeforeValidator(_zero_or_more), _DURATION_SCHEMA, Unit("duration")]
"""A duration that may be zero, in seconds."""

Usd = Annotated[float, BeforeValidator(_dollars), _schema(MONEY_PATTERN, "0.25 USD", "25 USD"), Unit("money")]
"""An amount above zero, in US dollars."""

Bytes = Annotated[int, BeforeValidator(_bytes), _schema(SIZE_PATTERN, "64MiB", "512KiB", "2MB"), Unit("size")]
"""A size above zero, in bytes."""
