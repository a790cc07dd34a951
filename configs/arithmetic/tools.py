"""The tools of the arithmetic workflow: an exact calculator and a unit converter.

Both count in fractions, so `0.1 + 0.2` is `0.3`. What cannot be done is a `ValueError` whose sentence the model reads.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}

_UNITS = {
    "length": {"mm": "0.001", "cm": "0.01", "m": "1", "km": "1000", "in": "0.0254", "ft": "0.3048", "mi": "1609.344"},
    "mass": {"g": "0.001", "kg": "1", "t": "1000", "oz": "0.028349523125", "lb": "0.45359237"},
    "time": {"s": "1", "min": "60", "h": "3600", "d": "86400"},
    "volume": {"ml": "0.001", "l": "1", "m3": "1000"},
}


def calculator(expression: str) -> str:
    """Work out an arithmetic expression exactly.

    Args:
        expression: Numbers, parentheses and + - * / // % **, for example "(3 + 4) * 2.5".
    """
    if len(expression) > 200:
        raise ValueError("the expression is longer than 200 characters; work it out in parts")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except SyntaxError:
        raise ValueError(f"cannot read {expression!r}; write numbers, parentheses and + - * / // % ** only") from None
    return spell(_value(tree.body))


def convert_units(value: float, unit: str, to: str) -> str:
    """Convert a value from one unit to another of the same kind.

    Args:
        value: How many of `unit`.
        unit: One of mm cm m km in ft mi, g kg t oz lb, s min h d, ml l m3.
        to: The unit to convert to.
    """
    for sizes in _UNITS.values():
        if unit in sizes and to in sizes:
            return spell(Fraction(str(value)) * Fraction(sizes[unit]) / Fraction(sizes[to]))
    raise ValueError(f"cannot convert {unit!r} to {to!r}; both must be units of one kind: length, mass, time or volume")


def spell(value: Fraction) -> str:
    """A number as people write it: `12`, `2.5`, or `5/12` where no short decimal is exact."""
    if value.denominator == 1:
        return str(value.numerator)
    decimal = f"{float(value):.10f}".rstrip("0")
    return decimal if Fraction(decimal) == value else f"{value.numerator}/{value.denominator}"


def _value(node: ast.expr) -> Fraction:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return Fraction(str(number))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.BinOp(op=ast.Pow(), left=left, right=right):
            return _power(_value(left), _value(right))
        case ast.BinOp(op=op, left=left, right=right) if type(op) in _OPERATORS:
            return _apply(_OPERATORS[type(op)], _value(left), _value(right))
    raise ValueError(f"{ast.unparse(node)!r} is not arithmetic")


def _apply(function: Callable[[Any, Any], Any], left: Fraction, right: Fraction) -> Fraction:
    try:
        return Fraction(function(left, right))
    except ZeroDivisionError:
        raise ValueError("cannot divide by zero") from None


def _power(base: Fraction, exponent: Fraction) -> Fraction:
    # An exponent without a bound would let one call hold a thread for hours.
    if exponent.denominator != 1 or abs(exponent) > 64:
        raise ValueError("an exponent must be a whole number between -64 and 64")
    if base == 0 and exponent < 0:
        raise ValueError("cannot divide by zero")
    return Fraction(base**exponent.numerator)
