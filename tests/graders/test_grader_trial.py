"""Golden cases of a grader: what passes, and what a person reads when one does not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from runner.graders.exact import ExactGrader
from runner.graders.extract import After
from runner.graders.grader import Grader, GraderContext
from runner.graders.math import MathGrader
from runner.graders.python import PythonGrader
from runner.graders.trial import GraderTrial, TrialResult, try_grader


def attempt(grader: Grader, trial: GraderTrial, **options: Any) -> TrialResult:
    return asyncio.run(try_grader(grader, trial, **options))


def test_passes() -> None:
    math = MathGrader(extraction=After("####"))
    assert attempt(math, GraderTrial(1.0, output="so #### 42", label="42")).passed
    assert attempt(math, GraderTrial(0, output="so #### 41", label="42")).passed
    assert attempt(math, GraderTrial((0.5, None), output="#### 42", label="42")).passed
    assert attempt(math, GraderTrial((None, 0.5), output="none", label="42")).passed
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "#### 42"}]
    assert attempt(math, GraderTrial(1.0, messages=messages, label="42")).passed
    row = ExactGrader(lambda ctx: f"{ctx.row['want']} {ctx.stop_reason}")
    assert attempt(row, GraderTrial(1.0, output="7 max_turns", row={"want": 7}, stop_reason="max_turns")).passed
    near = PythonGrader(lambda ctx: 0.1 + 0.2)
    assert attempt(near, GraderTrial(0.3, output="")).passed


def test_what_a_person_reads() -> None:
    exact = ExactGrader()
    assert attempt(exact, GraderTrial(1.0, output="41", label="42")).message == (
        "expected a score of 1, found 0: '41' is not '42'"
    )
    assert attempt(exact, GraderTrial((0.5, 0.9), output="42", label="42")).message == (
        "expected a score from 0.5 to 0.9, found 1: '42' is '42'"
    )
    no_label = attempt(exact, GraderTrial(1.0, output="42"))
    assert no_label.message.startswith("the grader could not speak: the row has no label")
    assert no_label.score is None


class Raises(Grader):
    async def grade(self, ctx: GraderContext) -> float:
        raise KeyError("answer")


class Sets(Grader):
    async def grade(self, ctx: GraderContext) -> None:
        if ctx.output:
            ctx.set_reward(0.5)


def test_graders_that_fail() -> None:
    raised = attempt(Raises(), GraderTrial(1.0, output=""))
    assert raised.message.startswith("the grader raised KeyError: 'answer' (")
    assert "in grade" in raised.message
    assert attempt(Sets(), GraderTrial(0.5, output="x")).passed
    assert "gave no score" in attempt(Sets(), GraderTrial(0.5, output="")).message
    slow = PythonGrader(lambda ctx: time.sleep(0.5))
    assert attempt(slow, GraderTrial(1.0, output=""), timeout=0.1).message == "the grader did not answer within 0.1 s"


def test_exactly_one_of_output_and_messages() -> None:
    for given in ({}, {"output": "x", "messages": []}):
        with pytest.raises(ValueError, match="exactly one of output and messages"):
            GraderTrial(1.0, **given)  # type: ignore[arg-type]


def test_building_graders_loads_nothing_heavy() -> None:
    kinds = "choice, contains, exact, extract, json_schema, math, python, regex, rubric, trajectory, reward"
    heavy = ["asyncio", "jsonschema", "pydantic", "sympy", "math_verify", "jinja2", "anyio"]
    script = f"from runner.graders import {kinds}\nimport sys\nprint([m for m in {heavy} if m in sys.modules])"
    root = Path(__file__).parents[2]
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=root)
    assert found.stdout == "[]\n"
