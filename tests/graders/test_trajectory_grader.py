"""Which tools were called, with what, in which order."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from runner.graders.grader import GraderContext, GraderMisfit, Score
from runner.graders.trajectory import ExpectedCall, TrajectoryGrader
from runner.records.failure import NoLabel

Call = tuple[str, Any]


def grade(grader: TrajectoryGrader, *calls: Call, row: dict[str, Any] | None = None) -> Score:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for name, arguments in calls:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call = {"id": "c", "type": "function", "function": {"name": name, "arguments": text}}
        messages += [{"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "content": "ok"}]
    return asyncio.run(grader.grade(GraderContext(messages=messages, row=row or {})))


A, B, C = ExpectedCall("a"), ExpectedCall("b"), ExpectedCall("c")
a: Call = ("a", {})
b: Call = ("b", {})
c: Call = ("c", {})

ORDERS: list[tuple[str, list[ExpectedCall], list[Call], float]] = [
    ("exact", [A, B], [a, b], 1.0),
    ("exact", [A, B], [a, b, c], 0.0),
    ("exact", [A, B], [b, a], 0.0),
    ("exact", [A, B], [a], 0.0),
    ("exact", [], [], 1.0),
    ("exact", [], [a], 0.0),
    ("in_order", [A, B], [a, c, b], 1.0),
    ("in_order", [A, B], [b, a], 0.5),
    ("in_order", [A, B, C], [c, a, b], 2 / 3),
    ("in_order", [A, B], [c], 0.0),
    ("in_order", [A, B], [], 0.0),
    ("in_order", [C, A, B], [a, b], 2 / 3),
    ("any_order", [A, B], [b, a], 1.0),
    ("any_order", [A, A], [a], 0.5),
    ("any_order", [A, B, C], [c, c, a], 2 / 3),
    ("any_order", [ExpectedCall("a"), ExpectedCall("a", {"x": 1})], [("a", {"x": 1}), ("a", {})], 1.0),
]


@pytest.mark.parametrize(("mode", "expect", "calls", "value"), ORDERS)
def test_orders(mode: Any, expect: list[ExpectedCall], calls: list[Call], value: float) -> None:
    score = grade(TrajectoryGrader(expect, mode=mode), *calls)
    assert score.value == pytest.approx(value)
    assert score.reason


ARGUMENTS: list[tuple[dict[str, Any], Any, bool]] = [
    ({"id": 7}, {"id": 7, "more": 1}, True),
    ({"id": 7}, {"id": 7.0}, True),
    ({"id": 7}, {"id": "7"}, False),
    ({"id": 7}, {}, False),
    ({"id": 1}, {"id": True}, False),
    ({"ok": True}, {"ok": True}, True),
    ({"q": "refund"}, {"q": "refund"}, True),
    ({"q": "refund"}, {"q": "Refund"}, False),
    ({"f": {"a": 1}}, {"f": {"a": 1, "b": 2}}, True),
    ({"f": [1, 2]}, {"f": [1, 2]}, True),
    ({"f": [1, 2]}, {"f": [1, 2, 3]}, False),
    ({"n": None}, {"n": None}, True),
    ({"n": None}, {}, False),
    ({"id": 7}, "{not json", False),
    ({"id": 7}, "[7]", False),
    ({"id": lambda ctx: str(ctx.row["id"])}, {"id": 7}, True),
    ({"id": lambda ctx: str(ctx.row["id"])}, {"id": 7.0}, True),
    ({"id": lambda ctx: str(ctx.row["id"])}, {"id": "7"}, True),
    ({"id": lambda ctx: str(ctx.row["id"])}, {"id": 8}, False),
    ({"id": lambda ctx: ctx.row["id"]}, {"id": 7}, True),
    ({"ok": lambda ctx: "True"}, {"ok": True}, True),
    ({"f": [{"id": lambda ctx: "7"}]}, {"f": [{"id": 7}]}, True),
]


@pytest.mark.parametrize(("wanted", "made", "right"), ARGUMENTS)
def test_arguments(wanted: dict[str, Any], made: Any, right: bool) -> None:
    grader = TrajectoryGrader([ExpectedCall("find", wanted)])
    assert grade(grader, ("find", made), row={"id": 7}).value == float(right)


def test_reasons_name_what_is_missing() -> None:
    grader = TrajectoryGrader([A, ExpectedCall("b", {"id": 1})])
    assert grade(grader, a).reason == "1 of 2 expected calls were made; missing: b with id=1"
    named = TrajectoryGrader([ExpectedCall("read", {"name": lambda ctx: ctx.row["name"]})])
    assert grade(named, a, row={"name": "x" * 99}).reason.endswith(f'missing: read with name="{"x" * 58}…')
    exact = TrajectoryGrader([A], mode="exact")
    assert grade(exact, b).reason == "call 1 must be a, found b({})"
    assert grade(exact, a, b).reason == "expected exactly 1 tool calls, found 2: a, b"


def test_max_calls() -> None:
    grader = TrajectoryGrader([A], max_calls=2)
    assert grade(grader, a, b).value == 1.0
    assert grade(grader, a, b, c) == Score(0.0, "3 tool calls, at most 2 allowed")
    assert grade(TrajectoryGrader(max_calls=0)).value == 1.0


def test_misfits_and_labels() -> None:
    with pytest.raises(GraderMisfit, match="every rollout would pass"):
        TrajectoryGrader()
    with pytest.raises(GraderMisfit, match="max_calls = 1 forbids the 2 calls"):
        TrajectoryGrader([A, B], max_calls=1)
    with pytest.raises(NoLabel):
        grade(TrajectoryGrader([A], needs_label=True), a)


def test_many_calls_are_quick() -> None:
    assert grade(TrajectoryGrader([A, B, C] * 5), *[a, b, c] * 1000).value == 1.0
