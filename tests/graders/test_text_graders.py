"""exact, contains, regex, choice, json_schema."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runner.graders.choice import ChoiceGrader
from runner.graders.contains import ContainsGrader
from runner.graders.exact import ExactGrader
from runner.graders.extract import After, Tag
from runner.graders.grader import Grader, GraderContext, GraderMisfit, Score
from runner.graders.json_schema import JsonSchemaGrader
from runner.graders.regex import RegexGrader
from runner.records.failure import GraderError, GraderTimeout, NoLabel


def grade(grader: Grader, output: str, label: str | None = None, **ctx: Any) -> Score:
    given = asyncio.run(
        grader.grade(GraderContext(messages=[{"role": "assistant", "content": output}], label=label, **ctx))
    )
    assert isinstance(given, Score)
    return given


EXACT: list[tuple[dict[str, Any], str, str, float]] = [
    ({}, "Paris", "Paris", 1.0),
    ({}, " Paris\n", "Paris", 1.0),
    ({}, "New  York", "New York", 1.0),
    ({}, "paris", "Paris", 0.0),
    ({"ignore_case": True}, "PARIS", "paris", 1.0),
    ({"ignore_case": True}, "STRASSE", "straße", 1.0),
    ({"ignore_punctuation": True}, "Paris.", "Paris", 1.0),
    ({"ignore_punctuation": True}, "“Paris”!", "Paris", 1.0),
    ({"ignore_space": False}, "Paris ", "Paris", 0.0),
    ({"ignore_space": False}, "Paris", "Paris", 1.0),
    ({}, "caf\u0065\u0301", "caf\u00e9", 1.0),
    ({}, "Parisian", "Paris", 0.0),
    ({"extraction": After("A:")}, "Q: x\nA: Paris", "Paris", 1.0),
]


@pytest.mark.parametrize(("options", "output", "label", "value"), EXACT)
def test_exact(options: dict[str, Any], output: str, label: str, value: float) -> None:
    assert grade(ExactGrader(**options), output, label).value == value


def test_exact_reasons_and_labels() -> None:
    assert grade(ExactGrader(), "41", "42").reason == "'41' is not '42'"
    with pytest.raises(NoLabel, match="has no label"):
        grade(ExactGrader(), "41")
    with pytest.raises(NoLabel, match="blank label"):
        grade(ExactGrader(), "41", " ")
    assert grade(ExactGrader(lambda ctx: str(ctx.row["want"])), "41", row={"want": 41}).value == 1.0
    assert ExactGrader().needs_label
    assert not ExactGrader(lambda ctx: "x").needs_label
    assert ExactGrader().range == (0.0, 1.0)
    assert len(grade(ExactGrader(), "x" * 10_000_000, "42").reason) < 200


def test_contains() -> None:
    assert grade(ContainsGrader(), "It is Paris.", "Paris").value == 1.0
    assert grade(ContainsGrader(), "It is paris.", "Paris").value == 0.0
    assert grade(ContainsGrader(ignore_case=True), "It is paris.", "Paris").value == 1.0
    both = [lambda ctx: "red", lambda ctx: "blue"]
    assert grade(ContainsGrader(both), "red and blue").value == 1.0
    missing = grade(ContainsGrader(both), "red and green")
    assert (missing.value, missing.reason) == (0.0, "does not contain 'blue'")
    assert grade(ContainsGrader(both, mode="any"), "red and green").value == 1.0
    assert grade(ContainsGrader(both, mode="any"), "green").value == 0.0
    with pytest.raises(GraderMisfit, match="empty list"):
        ContainsGrader([])
    with pytest.raises(GraderError, match="every output contains it"):
        grade(ContainsGrader(lambda ctx: ""), "anything")
    with pytest.raises(NoLabel):
        grade(ContainsGrader(), "anything")


def test_regex() -> None:
    assert grade(RegexGrader(r"\d{3}"), "call 911").value == 1.0
    assert grade(RegexGrader(r"\d{3}", full=True), "call 911").value == 0.0
    assert grade(RegexGrader(r"\d{3}", full=True), " 911\n").value == 1.0
    assert grade(RegexGrader("yes", ignore_case=True), "YES").value == 1.0
    assert grade(RegexGrader("(a)|b"), "b").value == 1.0
    assert grade(RegexGrader("^$"), "").value == 1.0
    assert grade(RegexGrader("x", extraction=Tag("t")), "x").reason.startswith("nothing to extract")
    with pytest.raises(GraderMisfit, match="does not compile"):
        RegexGrader("[")
    with pytest.raises(GraderTimeout):
        _with_workers("(a+)+$", "a" * 60 + "b")


def _with_workers(pattern: str, output: str) -> None:
    from runner.graders.worker import Workers

    async def run() -> None:
        workers = Workers(size=1)
        try:
            ctx = GraderContext(messages=[{"role": "assistant", "content": output}])
            await RegexGrader(pattern, workers=workers, timeout=0.3).grade(ctx)
        finally:
            await workers.aclose()

    asyncio.run(run())


CITIES = ["London", "Paris", "New York", "York"]
CHOICES: list[tuple[list[str], str, str, float]] = [
    (list("ABCD"), "B", "B", 1.0),
    (list("ABCD"), "(B)", "B", 1.0),
    (list("ABCD"), "B.", "B", 1.0),
    (list("ABCD"), "B)", "B", 1.0),
    (list("ABCD"), "**B**", "B", 1.0),
    (list("ABCD"), "b", "B", 1.0),
    (list("ABCD"), "\\boxed{B}", "B", 1.0),
    (list("ABCD"), "$\\boxed{\\text{B}}$", "B", 1.0),
    (list("ABCD"), "The answer is B", "B", 1.0),
    (list("ABCD"), "The answer is (B).", "B", 1.0),
    (list("ABCD"), "The correct answer is **B**.", "B", 1.0),
    (list("ABCD"), "Answer: B", "B", 1.0),
    (list("ABCD"), "answer: option B", "B", 1.0),
    (list("ABCD"), "A is wrong. So is C.\nThe answer is B", "B", 1.0),
    (list("ABCD"), "The answer is A. No: the answer is B", "B", 1.0),
    (list("ABCD"), "B. because", "B", 1.0),
    (list("ABCD"), "I would say (B), as shown above", "B", 1.0),
    (list("ABCD"), "A", "B", 0.0),
    (list("ABCD"), "The answer is A", "B", 0.0),
    (list("ABCD"), "The answer is A or B", "B", 0.0),
    (list("ABCD"), "The answer is A, B", "B", 0.0),
    (list("ABCD"), "Either (A) or (B)", "B", 0.0),
    (list("ABCD"), "A cat sat on a mat", "A", 0.0),
    (list("ABCD"), "no idea", "B", 0.0),
    (list("ABCD"), "", "B", 0.0),
    (list("ABCD"), "B", "(B)", 1.0),
    (CITIES, "Paris", "B", 1.0),
    (CITIES, "Paris", "Paris", 1.0),
    (CITIES, "B", "Paris", 1.0),
    (CITIES, "B. Paris", "B", 1.0),
    (CITIES, "B) London", "B", 0.0),
    (CITIES, "The answer is Paris.", "B", 1.0),
    (CITIES, "It is New York, I think", "C", 1.0),
    (CITIES, "York", "C", 0.0),
    (CITIES, "It must be London or Paris", "B", 0.0),
    (CITIES, "The answer is (B) Paris", "B", 1.0),
    (CITIES, "The answer is (B) London", "B", 0.0),
    (["yes", "no"], "Yes.", "yes", 1.0),
    (["yes", "no"], "no", "yes", 0.0),
    (["yes", "no"], "yes and no", "yes", 0.0),
    (["1", "2"], "2", "2", 1.0),
]


@pytest.mark.parametrize(("choices", "output", "label", "value"), CHOICES)
def test_choice(choices: list[str], output: str, label: str, value: float) -> None:
    score = grade(ChoiceGrader(choices), output, label)
    assert score.value == value, score.reason
    assert score.reason


def test_choice_errors() -> None:
    assert "several: A and B" in grade(ChoiceGrader(list("ABCD")), "The answer is A or B", "B").reason
    assert grade(ChoiceGrader(list("ABCD")), "no idea", "B").reason == "chose nothing: 'no idea'"
    with pytest.raises(GraderError, match=r"'E' is none of the choices \(A, B\)"):
        grade(ChoiceGrader(["A", "B"]), "A", "E")
    for choices in (["A"], ["A", "a"], ["x", ""], [str(n) for n in range(30)]):
        with pytest.raises(GraderMisfit, match="choices must be"):
            ChoiceGrader(choices)


SCHEMA = {
    "type": "object",
    "required": ["name"],
    "properties": {"name": {"type": "string"}, "age": {"$ref": "#/$defs/age"}},
    "$defs": {"age": {"type": "integer", "minimum": 0}},
}
JSON = [
    ('{"name": "x"}', 1.0, "fits"),
    ('```json\n{"name": "x", "age": 3}\n```', 1.0, "fits"),
    ('Sure!\n```\n{"name": "x"}\n```\nBye', 1.0, "fits"),
    ('The result is {"name": "x"}.', 1.0, "fits"),
    ("{}", 0.0, "$: 'name' is a required property"),
    ('{"name": 3, "age": -1}', 0.0, "$.age: -1 is less than the minimum of 0; $.name: 3 is not of type 'string'"),
    ('{"name": NaN}', 0.0, "not JSON"),
    ("{name: x}", 0.0, "not JSON"),
    ("", 0.0, "not JSON"),
    ("[" * 200_000, 0.0, "not JSON (it is nested too deeply)"),
    ("1" * 5_000, 0.0, "not JSON"),
]


@pytest.mark.parametrize(("output", "value", "reason"), JSON)
def test_json_schema(output: str, value: float, reason: str) -> None:
    score = grade(JsonSchemaGrader(SCHEMA), output)
    assert score.value == value
    assert score.reason.startswith(reason)


def test_json_schema_misfits() -> None:
    with pytest.raises(GraderMisfit, match="not a valid JSON Schema"):
        JsonSchemaGrader({"type": "strin"})
    with pytest.raises(GraderMisfit, match=r"refers to 'https://example\.com/x\.json'"):
        JsonSchemaGrader({"properties": {"a": {"$ref": "https://example.com/x.json"}}})
    with pytest.raises(GraderMisfit, match="refers to '#/nowhere'"):
        JsonSchemaGrader({"$ref": "#/nowhere"})


def test_json_schema_that_never_ends_is_not_a_zero() -> None:
    with pytest.raises(GraderError, match="never ends"):
        grade(JsonSchemaGrader({"$ref": "#"}), "{}")


def test_json_schema_patterns_cannot_hang() -> None:
    from runner.graders.worker import Workers

    async def run() -> tuple[Score, Score]:
        workers = Workers(size=1)
        try:
            grader = JsonSchemaGrader({"pattern": "^(a+)+$"}, workers=workers, timeout=0.5)
            right = await grader.grade(GraderContext(messages=[{"role": "assistant", "content": '"aaa"'}]))
            wrong = await grader.grade(GraderContext(messages=[{"role": "assistant", "content": '"b"'}]))
            hung = GraderContext(messages=[{"role": "assistant", "content": '"' + "a" * 60 + 'b"'}])
            with pytest.raises(GraderTimeout):
                await grader.grade(hung)
            return right, wrong
        finally:
            await workers.aclose()

    right, wrong = asyncio.run(run())
    assert (right.value, wrong.value) == (1.0, 0.0)
    assert "does not match" in wrong.reason
