"""The calculator: exact where it can be, every operation it offers, and an answer within a moment whatever is asked."""

from __future__ import annotations

import asyncio
import json
import math
from time import monotonic
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.tools.builtin.arithmetic import Uncountable
from runner.tools.builtin.calculator import Calculator
from runner.tools.builtin.expression import FUNCTIONS, evaluate


def use(precision: int = 10, **arguments: Any) -> tuple[str, Any]:
    result = asyncio.run(Calculator(precision)(**arguments))
    return result.status, json.loads(result.content)["result"] if result.status == "ok" else result.content


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("15 * 24", 360),
        ("0.1 + 0.2", 0.3),
        ("2 ** 100", 2**100),
        ("10 ** 400", 10**400),
        ("7 / 2", 3.5),
        ("6 / 3", 2),
        ("-7 // 2", -4),
        ("-7 % 3", 2),
        ("2 ^ 10", 1024),
        ("3 × 4 ÷ 6", 2),
        ("√(16) + 5²", 29),
        ("sqrt(144)", 12),
        ("sqrt(10 ** 100)", 10**50),
        ("factorial(20)", math.factorial(20)),
        ("comb(52, 5)", 2598960),
        ("log(8, 2)", 3),
        ("log10(1000)", 3),
        ("max(1, 5, 3) - min([4, 2])", 3),
        ("sum([1, 2, 3]) / 3", 2),
        ("mean(1, 2, 4)", 2.3333333333),
        ("round(2.567, 1)", 2.6),
        ("sin(pi / 2)", 1),
        ("1e-15 * 3", 3e-15),
        ("abs(-3) + (1 - 2) * -4", 7),
    ],
)  # fmt: skip
def test_an_expression_has_its_value(expression: str, value: float) -> None:
    assert use(expression=expression) == ("ok", value)


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ({"operation": "add", "numbers": [1, 2, 3.5]}, 6.5),
        ({"operation": "subtract", "a": 10, "b": 4}, 6),
        ({"operation": "multiply", "numbers": [2, 3, 7]}, 42),
        ({"operation": "divide", "a": 1, "b": 8}, 0.125),
        ({"operation": "power", "a": 2, "b": 0.5}, 1.4142135624),
        ({"operation": "sqrt", "n": 2}, 1.4142135624),
        ({"operation": "factorial", "n": 5.0}, 120),
        ({"operation": "sin", "n": 30, "unit": "degrees"}, 0.5),
        ({"operation": "cos", "a": 0}, 1),
        ({"operation": "tan", "n": 45, "unit": "degrees"}, 1),
        ({"operation": "log", "a": 100, "b": 10}, 2),
        ({"operation": "log", "n": math.e}, 1),
    ],
)  # fmt: skip
def test_every_operation_that_it_offers_works(arguments: dict[str, Any], value: float) -> None:
    assert use(**arguments) == ("ok", value)


def test_every_operation_of_the_schema_is_among_those_tested() -> None:
    offered = Calculator().spec("calculator").parameters["properties"]["operation"]["enum"]
    for operation in offered:
        numbers = [4.0] if operation in ("sqrt", "factorial", "sin", "cos", "tan", "log") else [4.0, 2.0]
        assert use(operation=operation, numbers=numbers)[0] == "ok"


def test_precision_is_the_number_of_decimal_places() -> None:
    assert use(2, expression="2 / 3") == ("ok", 0.67)
    assert use(0, expression="2 / 3") == ("ok", 1)
    assert use(3, expression="1 / 30000") == ("ok", 3.33e-05)


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("9**9**9", "digits"),
        ("factorial(10**7)", "too long"),
        ("(10**3000) * (10**3000)", "digits"),
        ("10**3000 * 1.5", "too large"),
        ("comb(10**9, 10**8)", "too long"),
        ("lcm(10**3999 + 1, 10**3999 + 3)", "digits"),
        ("1e308 * 10", "finite"),
        ("2.5 ** 10 ** 9", "too large"),
        ("5 / 0", "division by zero"),
        ("5 % 0", "division by zero"),
        ("0 ** -1", "negative power"),
        ("(-8) ** (1 / 3)", "real"),
        ("sqrt(-1)", "real"),
        ("asin(2)", "real"),
        ("log(0)", "positive"),
        ("log(5, 1)", "base"),
        ("factorial(-1)", "negative"),
        ("factorial(2.5)", "whole"),
        ("round(5, -10**9)", "places"),
        ("True + 1", "no arithmetic"),
        ("'a' * 3", "no arithmetic"),
        ("__import__('os')", "no function"),
        ("x + 1", "no known name"),
        ("(1).real", "no arithmetic"),
        ("[1, 2]", "a list is no number"),
        ("sum()", "takes numbers"),
        ("sqrt(1, 2)", "other or fewer"),
        ("2 +", "no expression"),
        ("", "empty"),
        ("1 +" * 2000 + "1", "characters"),
        ("-" * 1000 + "1", "nested"),
        ("9" * 1999, None),
    ],
)
def test_what_has_no_value_is_said_within_a_moment(expression: str, words: str | None) -> None:
    began = monotonic()
    status, said = use(expression=expression)
    assert monotonic() - began < 1.0
    assert (status, words is None or words in str(said)) == ("ok" if words is None else "error", True), said


def test_nothing_given_and_too_few_numbers_are_said() -> None:
    assert "give `expression`" in use()[1]
    assert "takes 2" in use(operation="power", a=2)[1]
    assert "2 or more" in use(operation="divide", numbers=[1])[1]


numbers = st.integers(-(10**6), 10**6)


@given(numbers, numbers, st.sampled_from("+-*"))
def test_whole_numbers_are_exact(left: int, right: int, sign: str) -> None:
    assert evaluate(f"({left}) {sign} ({right})") == {"+": left + right, "-": left - right, "*": left * right}[sign]


words = st.sampled_from(
    [*FUNCTIONS, "pi", "9", "(", ")", "**", "*", "/", "//", "%", ",", "-", "10", "[", "]", "0.5", "1e99"]
)


@given(st.lists(words, max_size=25).map("".join))
def test_no_expression_takes_long_or_raises_anything_else(expression: str) -> None:
    began = monotonic()
    try:
        value = evaluate(expression)
    except Uncountable as error:
        assert str(error)
    else:
        assert isinstance(value, int) or math.isfinite(value)
    assert monotonic() - began < 1.0
