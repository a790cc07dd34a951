"""`math`: the answer is mathematically the expected one.

Plain numbers, nearly all labels there are, are compared exactly by `number.py`. Only what is more than a number goes
to math-verify, in a worker process that can be killed.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from runner.graders.answer import AnswerGrader, short, verdict
from runner.graders.extract import MathAnswer
from runner.graders.grader import GraderMisfit, Score
from runner.graders.labels import Expect
from runner.graders.latex import boxed, plain
from runner.graders.number import parse_number, same_number
from runner.records.failure import GraderError

MAX_EXPRESSION = 5_000
"""Longer answers are not expressions; reading them costs more than they can say."""


class MathGrader(AnswerGrader):
    """1 when the answer equals the expected one, else 0. Keywords of `AnswerGrader` go through.

    `tolerance` is relative to the expected number; one of a millionth or less forgives the rounding of decimals and
    leaves whole numbers exact. Without an `extraction` it is `MathAnswer`. `grade` raises `GraderError`
    when the expected text cannot be read, or needs math-verify and it is not installed.
    """

    def __init__(self, expect: Expect | None = None, *, tolerance: float = 0.0, **answer: Any) -> None:
        if not math.isfinite(tolerance) or tolerance < 0:
            raise GraderMisfit(f"tolerance must be a finite number of at least 0, found {tolerance}")
        answer["extraction"] = answer.get("extraction") or MathAnswer()
        super().__init__(expect, **answer)
        self._tolerance = tolerance

    async def compare(self, answer: str, expected: str) -> Score:
        label, given = parse_number(expected), parse_number(answer)
        if label is not None and given is not None:
            # `repr` of a float is what the file said: 0.1 is one tenth here.
            right = same_number(label, given, Fraction(repr(self._tolerance)))
            return verdict(right, answer, expected)
        if len(answer) > MAX_EXPRESSION:
            return Score(0.0, f"{short(answer)} is too long to be a mathematical answer")
        if expected.strip() and plain(answer) == plain(expected):
            return verdict(True, answer, expected)
        return await self._ask(answer, expected, label is not None)

    async def _ask(self, answer: str, expected: str, label_is_number: bool) -> Score:
        request = {"label": _inner(expected), "answer": _inner(answer), "tolerance": self._tolerance}
        try:
            reply = await self._workers.ask("math", request, self._timeout)
        except GraderError as error:
            if error.kind == "math_extra_missing" and label_is_number:
                return Score(0.0, f"{short(answer)} is not a number, and {short(expected)} is")
            raise
        if not reply["label_read"]:
            raise GraderError(
                f'the expected answer {short(expected)} cannot be read as mathematics; use kind = "exact" for text, '
                "or extract the answer from the label in its template"
            )
        if not reply["answer_read"]:
            return Score(0.0, f"{short(answer)} cannot be read as mathematics")
        return verdict(reply["equal"], answer, expected)


def _inner(text: str) -> str:
    """Without the wrappers that math-verify would put its own around."""
    stripped = text.strip().rstrip(".")
    bare = boxed(stripped) or stripped
    return bare.strip("$ ").removeprefix("\\(").removesuffix("\\)").removeprefix("\\[").removesuffix("\\]").strip()
