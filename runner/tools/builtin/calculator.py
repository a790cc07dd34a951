"""`calculator`: numbers from an expression, or from an operation and its numbers."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from runner.records.completion import ToolSpec
from runner.tools.builtin.arithmetic import (
    Number,
    Uncountable,
    add,
    checked,
    divide,
    factorial,
    logarithm,
    multiply,
    power,
    square_root,
    subtract,
)
from runner.tools.builtin.expression import evaluate
from runner.tools.tool import ToolResult

PRECISION = 10
"""Decimal places of a result that is no whole number."""

_DESCRIPTION = (
    "Computes. Give `expression` (for example `sqrt(144) + 3 * (2 - 5) ** 2`; it knows + - * / // % **, abs, round, "
    "floor, ceil, sqrt, exp, log, log2, log10, factorial, comb, perm, gcd, lcm, sin, cos, tan, min, max, sum, mean, "
    "pi, e), or `operation` with `numbers`, or with `a` and `b`."
)
_OPERATIONS = (
    "add", "subtract", "multiply", "divide", "power", "sqrt", "factorial", "sin", "cos", "tan", "log",
)  # fmt: skip
_NUMBER = {"type": "number"}
_PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "expression": {"type": "string", "description": "What to compute."},
        "operation": {
            "enum": list(_OPERATIONS),
            "description": "Instead of an expression: what to do with the numbers.",
        },
        "numbers": {"type": "array", "items": _NUMBER, "description": "The operation's numbers, in order."},
        "a": {**_NUMBER, "description": "The operation's first number."},
        "b": {
            **_NUMBER,
            "description": "Its second: the subtrahend, the divisor, the exponent, or the base of the log.",
        },
        "n": {**_NUMBER, "description": "The one number of sqrt, factorial, sin, cos, tan, log."},
        "unit": {"enum": ["radians", "degrees"], "description": "Of the angle of sin, cos, tan. Default: radians."},
    },
    "additionalProperties": False,
}


def _fold(work: Callable[[Number, Number], Number]) -> Callable[[list[Number]], Number]:
    def folded(numbers: list[Number]) -> Number:
        total, *rest = numbers
        for each in rest:
            total = work(total, each)
        return total

    return folded


_OF_MANY: Mapping[str, Callable[[list[Number]], Number]] = {
    "add": _fold(add),
    "subtract": _fold(subtract),
    "multiply": _fold(multiply),
    "divide": _fold(divide),
}
_OF_TWO: Mapping[str, Callable[[Number, Number], Number]] = {"power": power}
_ANGLES: Mapping[str, Callable[[float], float]] = {"sin": math.sin, "cos": math.cos, "tan": math.tan}
_OF_ONE: Mapping[str, Callable[[Number], Number]] = {"sqrt": square_root, "factorial": factorial}


class Calculator:
    """Answers with JSON: `result`, and the `expression` or `operation` it is of.

    Whole results are exact; others are rounded to `precision` decimal places, and a tiny one keeps that many
    significant digits. What has no value is an error the model can mend.
    """

    def __init__(self, precision: int = PRECISION) -> None:
        self._precision = precision

    def spec(self, name: str) -> ToolSpec:
        return ToolSpec(name, _DESCRIPTION, _PARAMETERS)

    async def __call__(self, **arguments: Any) -> ToolResult:
        try:
            what, value = _computed(arguments)
        except Uncountable as error:
            return ToolResult(f"The calculator has no result: {error}.", "error")
        return ToolResult(json.dumps({**what, "result": self._rounded(value)}, ensure_ascii=False))

    def _rounded(self, value: Number) -> Number:
        if isinstance(value, int):
            return value
        rounded = round(value, self._precision)
        if rounded == 0.0 and value != 0.0:
            return float(f"{value:.{max(self._precision, 1)}g}")
        return int(rounded) if rounded.is_integer() and abs(rounded) < 2**53 else rounded


def _computed(arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Number]:
    """What was asked, and its value. Raises `Uncountable`."""
    expression = arguments.get("expression")
    if expression is not None:
        return {"expression": expression}, evaluate(expression)
    operation = arguments.get("operation")
    if operation is None:
        raise Uncountable("give `expression`, or `operation` with its numbers")
    numbers = _numbers(arguments)
    value = _operated(operation, numbers, arguments.get("unit") or "radians")
    return {"operation": operation, "numbers": numbers}, checked(value)


def _numbers(arguments: Mapping[str, Any]) -> list[Number]:
    given = arguments.get("numbers")
    if given is None:
        given = [arguments[key] for key in ("a", "b", "n") if arguments.get(key) is not None]
    return [int(each) if isinstance(each, float) and each.is_integer() else each for each in given]


def _operated(operation: str, numbers: list[Number], unit: str) -> Number:
    wanted = _wanted(operation)
    if len(numbers) not in wanted:
        words = f"{wanted.start} or more numbers" if len(wanted) > 2 else " or ".join(str(each) for each in wanted)
        raise Uncountable(f"`{operation}` takes {words}, found {len(numbers)}")
    try:
        if operation in _OF_MANY:
            return _OF_MANY[operation](numbers)
        if operation in _OF_TWO:
            return _OF_TWO[operation](numbers[0], numbers[1])
        if operation in _ANGLES:
            angle = math.radians(numbers[0]) if unit == "degrees" else float(numbers[0])
            return _ANGLES[operation](angle)
        return logarithm(*numbers) if operation == "log" else _OF_ONE[operation](numbers[0])
    except OverflowError:
        raise Uncountable(f"`{operation}`: the numbers are too large for it") from None


def _wanted(operation: str) -> range:
    """How many numbers an operation takes."""
    if operation in _OF_MANY:
        return range(2 if operation in ("subtract", "divide") else 1, 1001)
    if operation in _OF_TWO:
        return range(2, 3)
    return range(1, 3) if operation == "log" else range(1, 2)
