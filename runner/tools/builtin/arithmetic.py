"""Operations on numbers, exact where they can be and bounded everywhere: none takes longer than a moment.

Whole numbers stay whole, however many digits; only what has no whole result becomes a float. Before an operation is
done its size is known, so that `9**9**9` is refused instead of computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

Number: TypeAlias = int | float

MOST_DIGITS = 4000
"""Decimal digits of a whole number, in between and at the end."""
_MOST_BITS = int(MOST_DIGITS * math.log2(10))
_MOST_FACTORIAL = 1400
"""1400! has 3,765 digits."""


class Uncountable(ValueError):
    """What was asked has no value here. The message is a sentence for whoever asked."""


def checked(value: Number) -> Number:
    """The number, if it is one to be said. Raises `Uncountable` for nan, infinities and what is too long."""
    if isinstance(value, int):
        if value.bit_length() > _MOST_BITS:
            raise Uncountable(f"the number has more than {MOST_DIGITS:,} digits")
        return value
    if math.isnan(value) or math.isinf(value):
        raise Uncountable("the result is not a finite number")
    return value


def add(left: Number, right: Number) -> Number:
    return checked(left + right)


def subtract(left: Number, right: Number) -> Number:
    return checked(left - right)


def multiply(left: Number, right: Number) -> Number:
    if isinstance(left, int) and isinstance(right, int) and left.bit_length() + right.bit_length() > _MOST_BITS + 1:
        raise Uncountable(f"the product has more than {MOST_DIGITS:,} digits")
    return checked(left * right)


def divide(left: Number, right: Number) -> Number:
    """A whole number where there is one. Raises `Uncountable` for a zero below."""
    if right == 0:
        raise Uncountable("division by zero")
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    return checked(left / right)


def power(base: Number, exponent: Number) -> Number:
    """`base` to the `exponent`, exact for whole numbers. Raises `Uncountable` before it would get too long."""
    if base == 0 and exponent < 0:
        raise Uncountable("zero has no negative power")
    if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0:
        if abs(base) > 1 and exponent * (abs(base).bit_length() - 1) > _MOST_BITS:
            raise Uncountable(f"the power has more than {MOST_DIGITS:,} digits")
        return checked(base**exponent)
    value = float(base) ** exponent
    if isinstance(value, complex):
        raise Uncountable("a negative number has no such power among the real numbers")
    return checked(value)


def factorial(value: Number) -> int:
    """Raises `Uncountable` for what is no whole number from 0 to 1,400."""
    count = whole(value, "factorial")
    if count < 0:
        raise Uncountable("a negative number has no factorial")
    if count > _MOST_FACTORIAL:
        raise Uncountable(f"factorial takes at most {_MOST_FACTORIAL:,}: the result would be too long")
    return math.factorial(count)


def square_root(value: Number) -> Number:
    """Whole for a perfect square, however long."""
    if value < 0:
        raise Uncountable("a negative number has no square root among the real numbers")
    if isinstance(value, int):
        root = math.isqrt(value)
        if root * root == value:
            return root
    return math.sqrt(value)


def logarithm(value: Number, base: Number | None = None) -> float:
    """To `base`, e by default. Raises `Uncountable` where there is none."""
    if value <= 0:
        raise Uncountable("only positive numbers have a logarithm")
    if base is None:
        return math.log(value)
    if base <= 0 or base == 1:
        raise Uncountable("the base of a logarithm is positive and not 1")
    if base in (2, 10):  # exact for their powers, which the general way is not
        return math.log2(value) if base == 2 else math.log10(value)
    return math.log(value, base)


def floor_divide(left: Number, right: Number) -> Number:
    """Raises `Uncountable` for a zero below, as `remainder` does."""
    if right == 0:
        raise Uncountable("division by zero")
    return checked(left // right)


def remainder(left: Number, right: Number) -> Number:
    if right == 0:
        raise Uncountable("division by zero")
    return checked(left % right)


def mean(values: list[Number]) -> Number:
    """Raises `Uncountable` for no values."""
    if not values:
        raise Uncountable("no numbers have no mean")
    return divide(total(values), len(values))


def total(values: list[Number]) -> Number:
    if all(isinstance(value, int) for value in values):
        return checked(sum(values))
    return checked(math.fsum(values))


def product(values: list[Number]) -> Number:
    result: Number = 1
    for value in values:
        result = multiply(result, value)
    return result


def whole(value: Number, what: str) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise Uncountable(f"{what} takes whole numbers, found {value:g}")
    return int(value)


def counted(function: Callable[[int, int], int], what: str) -> Callable[[Number, Number], int]:
    def count(n: Number, k: Number) -> int:
        many, part = whole(n, what), whole(k, what)
        if many < 0 or part < 0:
            raise Uncountable(f"{what} takes numbers from 0 on")
        # log2 of what may come, without computing it: at most n to the k of them.
        if min(part, many) * max(1, many.bit_length()) > _MOST_BITS * 2:
            raise Uncountable(f"{what}: the result would be too long")
        return function(many, part)

    return count


def rounded(value: Number, places: Number = 0) -> Number:
    digits = whole(places, "round")
    if abs(digits) > MOST_DIGITS:
        raise Uncountable(f"round takes at most {MOST_DIGITS:,} places")
    return round(value, digits) if digits else round(value)


def of_all(function: Callable[[list[Number]], Number], what: str) -> Callable[..., Number]:
    """Takes numbers one by one or as a list."""

    def call(*values: Any) -> Number:
        numbers = list(values[0]) if len(values) == 1 and isinstance(values[0], list) else list(values)
        if not numbers or any(isinstance(each, list) for each in numbers):
            raise Uncountable(f"{what} takes numbers, or one list of them")
        return function(numbers)

    return call
