"""The arithmetic dataset is right, and so is the calculator that its answers are checked with."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from fractions import Fraction
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

FOLDER = Path(__file__).parents[2] / "configs" / "arithmetic"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"arithmetic_{name}", FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tools = load("tools")
graders = load("graders")
ROWS: list[dict[str, Any]] = [json.loads(line) for line in (FOLDER / "dataset.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_the_answer_is_what_its_expression_comes_to(row: dict[str, Any]) -> None:
    assert tools.calculator(row["expression"]) == row["answer"]


def test_the_problems_are_many_and_varied() -> None:
    assert len(ROWS) == 120
    assert len({row["id"] for row in ROWS}) == len({row["question"] for row in ROWS}) == 120
    assert Counter(row["category"] for row in ROWS) == dict.fromkeys({row["category"] for row in ROWS}, 10)
    assert {tuple(row) for row in ROWS} == {("id", "question", "answer", "category", "expression", "conversion")}


def test_every_problem_about_units_names_a_conversion_that_works() -> None:
    for row in ROWS:
        assert (row["conversion"] is not None) == (row["category"] == "units")
        if row["conversion"]:
            assert Fraction(tools.convert_units(**row["conversion"])) > 0


@pytest.mark.parametrize(
    ("expression", "value"),
    [("1/3 + 1/3", "2/3"), ("-2**2", "-4"), ("7 // 2", "3"), ("7 % 4", "3"), ("2**-1", "0.5"), ("1e3 * 2", "2000")],
)
def test_the_calculator_is_exact(expression: str, value: str) -> None:
    assert tools.calculator(expression) == value


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("", "cannot read"),
        ("4 times 3", "cannot read"),
        ("x + 1", "not arithmetic"),
        ("().__class__", "not arithmetic"),
        ("True + 1", "not arithmetic"),
        ("'a' * 9", "not arithmetic"),
        ("9**9**9", "an exponent must"),
        ("0**-1", "divide by zero"),
        ("5 % 0", "divide by zero"),
        ("1+" * 200 + "1", "longer than 200"),
    ],
)
def test_the_calculator_refuses_with_a_sentence(expression: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        tools.calculator(expression)


@settings(max_examples=100)
@given(st.fractions(max_denominator=1000))
def test_a_spelled_number_reads_back_as_itself(value: Fraction) -> None:
    assert Fraction(tools.spell(value)) == value


@pytest.mark.parametrize(
    ("answer", "score"),
    [("so\n#### 12", 1.0), ("#### $1,120", 1.0), ("#### 5/12", 1.0), ("#### 12 eggs", 0.0), ("12", 0.0), ("", 0.0)],
)
def test_the_form_is_the_last_line(answer: str, score: float) -> None:
    assert graders.form(answer, "12", {}) == score
