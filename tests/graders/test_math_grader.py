"""The math grader: numbers at once, algebra in a worker that can be killed, and GSM8K as it is."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest

from runner.graders.extract import After, Boxed
from runner.graders.grader import GraderContext, GraderMisfit, Score
from runner.graders.math import MathGrader
from runner.graders.worker import Workers
from runner.records.failure import GraderError, GraderTimeout, NoLabel

GSM8K = Path(__file__).parents[3] / "shared" / "data" / "gsm8k" / "test.jsonl"

RIGHT = [
    ("\\frac{\\sqrt{3}}{3}", "\\frac{1}{\\sqrt{3}}"),
    ("\\frac{\\sqrt3}{3}", "1/\\sqrt{3}"),
    ("\\sqrt{8}", "2\\sqrt{2}"),
    ("x^2+2x+1", "(x+1)^2"),
    ("x+1", "1+x"),
    ("2\\pi", "\\pi \\cdot 2"),
    ("\\{1,2\\}", "\\{2,1\\}"),
    ("(1,2]", "(1, 2]"),
    ("(3, 5)", "(3,5)"),
    ("x=5", "5"),
    ("5", "x = 5"),
    ("18", "3*6"),
    ("18", "9+9"),
    ("\\text{Monday}", "Monday"),
    ("\\log_2 8", "3"),
    ("2^{10}", "1024"),
    ("\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{pmatrix}1\\\\2\\end{pmatrix}"),
    ("\\infty", "\\infty"),
    ("3\\sqrt{2}", "$3\\sqrt{2}$"),
    ("\\frac{x}{2}", "0.5x"),
    ("i", "\\boxed{i}"),
]
WRONG = [
    ("\\sqrt{8}", "2\\sqrt{3}"),
    ("(1,2]", "(1,2)"),
    ("(3, 5)", "(5, 3)"),
    ("x^2", "x^3"),
    ("20", "18 or 20"),
    ("2", "2x"),
    ("x+1", "I do not know"),
    ("5", "I do not know"),
    ("\\frac{1}{2}", "\\frac{1}{"),
    ("\\pi", "3"),
    ("5", "5 and also 6"),
]


def _grade(grader: MathGrader, output: str, label: str | None) -> Score:
    return asyncio.run(grader.grade(_context(output, label)))


def _context(output: str, label: str | None) -> GraderContext:
    return GraderContext(messages=[{"role": "assistant", "content": output}], label=label)


def test_algebra_both_ways() -> None:
    async def all_of_them() -> dict[tuple[str, str], float]:
        workers = Workers()
        grader = MathGrader(workers=workers, timeout=20)
        try:
            return {
                (label, answer): (await grader.grade(_context(f"\\boxed{{{answer}}}", label))).value
                for label, answer in RIGHT + WRONG
            }
        finally:
            await workers.aclose()

    values = asyncio.run(all_of_them())
    assert {case: value for case, value in values.items() if value != 1.0 and case in RIGHT} == {}
    assert {case: value for case, value in values.items() if value != 0.0 and case in WRONG} == {}


OUTPUTS = [
    ("18", "#### 18", 1.0),
    ("18", "so the answer is\n\\boxed{18}", 1.0),
    ("18", "$18.00", 1.0),
    ("18", "She makes 18 dollars every day.", 1.0),
    ("18", "First 9, then twice that:\n\nThe answer is **18**.", 1.0),
    ("18", "\\boxed{19}, not 18", 0.0),
    ("50", "the discount is 50%", 1.0),
    ("0.5", "\\boxed{\\frac{1}{2}}", 1.0),
    ("1,000", "#### 1000", 1.0),
    ("1000000", "one million, that is 1 million", 1.0),
]


@pytest.mark.parametrize(("label", "output", "value"), OUTPUTS)
def test_finds_the_answer_without_being_told_where(label: str, output: str, value: float) -> None:
    assert _grade(MathGrader(), output, label).value == value


def test_nothing_to_extract_is_the_policys_failure() -> None:
    score = _grade(MathGrader(extraction=Boxed()), "The answer is 18.", "18")
    assert score.value == 0.0
    assert score.reason == "nothing to extract: no match for \\boxed{...} in 'The answer is 18.'"
    assert _grade(MathGrader(), "", "18").reason.startswith("nothing to extract")


@pytest.mark.parametrize("label", [None, "", "  "])
def test_no_label_is_no_score(label: str | None) -> None:
    with pytest.raises(NoLabel, match="fill the row's ground_truth column"):
        _grade(MathGrader(), "18", label)


def test_tolerance() -> None:
    assert _grade(MathGrader(), "0.333", "1/3").value == 0.0
    assert _grade(MathGrader(tolerance=0.01), "0.333", "1/3").value == 1.0
    assert _grade(MathGrader(tolerance=1e-6), "10000001", "10000000").value == 0.0
    with pytest.raises(GraderMisfit, match="tolerance"):
        MathGrader(tolerance=-1.0)


def test_tolerance_of_algebra() -> None:
    async def close() -> tuple[float, float]:
        workers = Workers(size=1)
        near, far = _context("\\boxed{4.44}", "\\pi\\sqrt{2}"), _context("\\boxed{4.6}", "\\pi\\sqrt{2}")
        grader = MathGrader(tolerance=0.01, workers=workers)
        try:
            return (await grader.grade(near)).value, (await grader.grade(far)).value
        finally:
            await workers.aclose()

    assert asyncio.run(close()) == (1.0, 0.0)


def test_a_tower_of_powers_ends_in_time_and_harms_nobody() -> None:
    async def tower() -> tuple[list[object], float, list[int]]:
        workers = Workers(size=2)
        slow = MathGrader(workers=workers, timeout=1.0)
        try:
            await slow.grade(_context("x+1", "1+x"))
            loop = asyncio.get_running_loop()
            started = loop.time()
            hung = slow.grade(_context("\\boxed{10^{10^{8}}}", "5"))
            others = [slow.grade(_context("\\boxed{x+1}", "1+x")) for _ in range(6)]
            results = await asyncio.gather(hung, *others, return_exceptions=True)
            return list(results), loop.time() - started, workers.pids
        finally:
            await workers.aclose()

    results, seconds, pids = asyncio.run(tower())
    assert isinstance(results[0], GraderTimeout)
    assert [score.value for score in results[1:] if isinstance(score, Score)] == [1.0] * 6
    assert seconds < 10
    assert len(pids) <= 2


def test_a_label_that_is_no_mathematics_is_not_a_zero() -> None:
    async def ask() -> None:
        workers = Workers(size=1)
        try:
            await MathGrader(workers=workers).grade(_context("\\boxed{x}", "\\begin{nonsense"))
        finally:
            await workers.aclose()

    with pytest.raises(GraderError, match="cannot be read as mathematics"):
        asyncio.run(ask())


def test_without_the_extra_only_labels_that_need_it_are_an_error(tmp_path: Path) -> None:
    # A worker whose python finds a math_verify that cannot be imported stands for one that is not installed.
    (tmp_path / "math_verify.py").write_text("raise ImportError('No module named math_verify')")
    script = f"""
import asyncio, os, sys
sys.path.append({str(Path(__file__).parents[2])!r})
os.environ["PYTHONPATH"] = {str(tmp_path)!r}
from runner.graders.grader import GraderContext
from runner.graders.math import MathGrader
from runner.graders.worker import Workers
from runner.records.failure import GraderError

async def main():
    workers = Workers(size=1)
    grader = MathGrader(workers=workers)
    def ctx(output, label):
        return GraderContext(messages=[dict(role="assistant", content=output)], label=label)
    print((await grader.grade(ctx("18", "18"))).value)
    print((await grader.grade(ctx("\\\\boxed{{x}}", "18"))).value)
    try:
        print(await grader.grade(ctx("\\\\boxed{{x+1}}", "1+x")))
    except GraderError as error:
        print(error)
    await workers.aclose()
asyncio.run(main())
"""
    import subprocess

    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    lines = found.stdout.splitlines()
    assert lines[:2] == ["1.0", "0.0"]
    assert 'pip install "osmosis-run[math]"' in lines[2]
    assert found.stderr == ""


@pytest.mark.skipif(not GSM8K.exists(), reason="the GSM8K test split is not at ../shared/data/gsm8k/test.jsonl")
def test_every_gsm8k_solution_is_right_about_itself() -> None:
    rows = [json.loads(line) for line in GSM8K.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 1319
    wrong = asyncio.run(_wrong_of_gsm8k([row["answer"] for row in rows]))
    assert wrong == []


async def _wrong_of_gsm8k(solutions: list[str]) -> list[tuple[str, str]]:
    told, free = MathGrader(extraction=After("####")), MathGrader()
    wrong = []
    for solution in solutions:
        label = solution.rpartition("####")[2].strip()
        plain = label.replace(",", "")
        grouped = f"{int(plain):,}" if "." not in plain else plain
        outputs = [
            (told, solution),
            (told, f"#### ${grouped}.00" if "." not in plain else f"#### ${plain}"),
            (told, f"so it is #### {plain} dollars."),
            (free, f"The answer is \\boxed{{{grouped}}}."),
            (free, f"Therefore she has **{grouped}** apples left."),
            (free, f"$x = {plain}$"),
        ]
        for grader, output in outputs:
            score = await grader.grade(_context(output, label))
            if score.value != 1.0:
                wrong.append((output, score.reason))
        off = await told.grade(_context(f"#### {float(plain) + 1}", label))
        if off.value != 0.0:
            wrong.append(("off by one", off.reason))
    return wrong
