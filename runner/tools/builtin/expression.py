"""Expressions: text to a tree of Python's own parser, and of that only what is arithmetic."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any

from runner.tools.builtin import arithmetic
from runner.tools.builtin.arithmetic import Number, Uncountable, checked

LONGEST = 2000
"""Characters of an expression."""
_DEEPEST = 60
_WRITTEN = {
    "×": "*", "·": "*", "÷": "/", "\N{MINUS SIGN}": "-", "π": "pi", "√": "sqrt", "²": "**2", "³": "**3", "^": "**",
}  # fmt: skip


def evaluate(expression: str) -> Number:
    """The value of an expression: + - * / // % **, brackets, `FUNCTIONS`, `CONSTANTS`, lists of numbers.

    `^` and the signs of print (times, divide, squared, pi) mean what they look like. Raises `Uncountable`.
    """
    text = expression.strip()
    if not text:
        raise Uncountable("the expression is empty")
    if len(text) > LONGEST:
        raise Uncountable(f"the expression has {len(text):,} characters, at most {LONGEST:,} are read")
    for written, meant in _WRITTEN.items():
        text = text.replace(written, meant)
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        what = error.msg if isinstance(error, SyntaxError) else "it is nested too deeply"
        raise Uncountable(f"`{expression.strip()[:80]}` is no expression: {what}") from None
    return checked(_number(tree.body, 0))


CONSTANTS: Mapping[str, float] = {"pi": math.pi, "e": math.e, "tau": math.tau}
FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "abs": abs,
    "round": arithmetic.rounded,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": math.trunc,
    "sqrt": arithmetic.square_root,
    "cbrt": math.cbrt,
    "pow": arithmetic.power,
    "exp": math.exp,
    "log": arithmetic.logarithm,
    "ln": arithmetic.logarithm,
    "log2": lambda value: arithmetic.logarithm(value, 2),
    "log10": lambda value: arithmetic.logarithm(value, 10),
    "factorial": arithmetic.factorial,
    "comb": arithmetic.counted(math.comb, "comb"),
    "perm": arithmetic.counted(math.perm, "perm"),
    "gcd": lambda *values: math.gcd(*(arithmetic.whole(each, "gcd") for each in values)),
    "lcm": lambda *values: checked(math.lcm(*(arithmetic.whole(each, "lcm") for each in values))),
    "sin": math.sin,
    "cos": math.cos,
    "tan": math.tan,
    "asin": math.asin,
    "acos": math.acos,
    "atan": math.atan,
    "atan2": math.atan2,
    "sinh": math.sinh,
    "cosh": math.cosh,
    "tanh": math.tanh,
    "hypot": math.hypot,
    "radians": math.radians,
    "degrees": math.degrees,
    "min": arithmetic.of_all(min, "min"),
    "max": arithmetic.of_all(max, "max"),
    "sum": arithmetic.of_all(arithmetic.total, "sum"),
    "prod": arithmetic.of_all(arithmetic.product, "prod"),
    "mean": arithmetic.of_all(arithmetic.mean, "mean"),
}
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Number]] = {
    ast.Add: arithmetic.add,
    ast.Sub: arithmetic.subtract,
    ast.Mult: arithmetic.multiply,
    ast.Div: arithmetic.divide,
    ast.FloorDiv: arithmetic.floor_divide,
    ast.Mod: arithmetic.remainder,
    ast.Pow: arithmetic.power,
}
_SIGNS = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
}  # fmt: skip


def _number(node: ast.expr, depth: int) -> Number:
    value = _value(node, depth)
    if isinstance(value, int | float):
        return value
    raise Uncountable("a list is no number: give it to sum, min, max, mean or prod")


def _value(node: ast.expr, depth: int) -> Any:
    if depth > _DEEPEST:
        raise Uncountable("the expression is nested too deeply")
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return checked(value)
        case ast.Name(id=name) if name in CONSTANTS:
            return CONSTANTS[name]
        case ast.Name(id=name):
            raise Uncountable(f"`{name[:40]}` is no known name: {', '.join(CONSTANTS)} are, and {', '.join(FUNCTIONS)}")
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _number(operand, depth + 1)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_number(operand, depth + 1)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            return _binary(type(op), _number(left, depth + 1), _number(right, depth + 1))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in FUNCTIONS:
            return _called(name, [_value(each, depth + 1) for each in arguments])
        case ast.Call(func=ast.Name(id=name)):
            raise Uncountable(f"there is no function `{name[:40]}`: {', '.join(FUNCTIONS)} are known")
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_number(each, depth + 1) for each in items]
        case _:
            raise Uncountable(f"`{ast.unparse(node)[:60]}` is no arithmetic")


def _binary(op: type[ast.operator], left: Number, right: Number) -> Number:
    return _sound(lambda: _BINARY[op](left, right), f"{_short(left)} {_SIGNS[op]} {_short(right)}")


def _called(name: str, arguments: list[Any]) -> Number:
    return _sound(lambda: FUNCTIONS[name](*arguments), f"{name}({', '.join(_short(each) for each in arguments)})")


def _sound(work: Callable[[], Number], what: str) -> Number:
    try:
        return checked(work())
    except Uncountable as error:
        raise Uncountable(f"{what}: {error}" if what not in str(error) else str(error)) from None
    except OverflowError:
        raise Uncountable(f"{what}: the numbers are too large for it") from None
    except ValueError:
        raise Uncountable(f"{what} has no value among the real numbers") from None
    except TypeError:
        raise Uncountable(f"{what}: it takes other or fewer numbers") from None


def _short(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_short(each) for each in value[:3])}{', …' if len(value) > 3 else ''}]"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"a number of {int(value.bit_length() / math.log2(10)) + 1:,} digits"
    return f"{value!r}"
