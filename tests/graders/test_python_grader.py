"""The user's own functions and classes: three signatures, everything they may return, everything they may raise."""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
import time
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from pydantic import BaseModel

from runner.graders.grader import Grader, GraderContext, GraderMisfit, Score
from runner.graders.python import PythonGrader
from runner.graders.threads import Threads
from runner.records.completion import Caller
from runner.records.failure import GraderError, JudgeUnavailable, LimitReached, ModelUnavailable, NoLabel

ROW = {"question": "2+2", "data_source": "toy"}


def context(output: str = "4", label: str | None = "4") -> GraderContext:
    messages = [{"role": "user", "content": "2+2"}, {"role": "assistant", "content": output}]
    return GraderContext(messages=messages, label=label, row=ROW, caller=Caller("r-1"))


def grade(target: Any, config: dict[str, Any] | None = None, **given: Any) -> Score:
    return asyncio.run(PythonGrader(target, config or {}).grade(context(**given)))


def test_solution_signatures() -> None:
    def full(solution_str: str, ground_truth: str, extra_info: dict[str, Any] | None = None) -> float:
        assert extra_info == ROW
        return float(solution_str == ground_truth)

    def with_rest(solution_str: str, ground_truth: str, extra_info: dict[str, Any], **kwargs: Any) -> float:
        return float(kwargs["bonus"])

    def only_rest(solution_str: str, **kwargs: Any) -> float:
        return float(kwargs["ground_truth"] == "4" and kwargs["extra_info"] == ROW)

    def verl(data_source: str, solution_str: str, ground_truth: str, extra_info: Any = None) -> float:
        return float(data_source == "toy")

    def by_position(solution_str: str, ground_truth: str, extra_info: Any, /) -> float:
        return float(solution_str == ground_truth)

    async def awaited(solution_str: str, ground_truth: str | None, extra_info: Any = None) -> float:
        return 0.5 if ground_truth is None else 1.0

    assert grade(full).value == 1.0
    assert grade(full, output="5").value == 0.0
    assert grade(with_rest, {"bonus": 0.25}).value == 0.25
    assert grade(only_rest).value == 1.0
    assert grade(verl).value == 1.0
    assert grade(by_position).value == 1.0
    assert grade(awaited).value == 1.0
    assert grade(awaited, label=None).value == 0.5
    assert grade(functools.partial(with_rest, bonus=0.75)).value == 0.75


def test_messages_signature_gets_a_copy() -> None:
    def spoil(messages: list[dict[str, Any]], ground_truth: str, metadata: dict[str, Any]) -> float:
        assert metadata == ROW
        messages[0]["content"] = "spoiled"
        messages.clear()
        metadata.clear()
        return 1.0

    original = [{"role": "assistant", "content": "4"}]
    ctx = GraderContext(messages=original, label="4", row=ROW)
    assert asyncio.run(PythonGrader(spoil).grade(ctx)).value == 1.0
    assert original == [{"role": "assistant", "content": "4"}]
    assert ROW["question"] == "2+2"


def test_context_signatures() -> None:
    def plain(ctx: Any) -> float:
        return float(ctx.output == ctx.label and ctx.caller.rollout_id == "r-1")

    async def hinted(given: GraderContext, scale: float = 1.0) -> None:
        given.set_reward(scale)

    def second_generation(ctx: Any) -> None:
        for name in ctx.get_samples():
            ctx.set_sample_reward(name, 0.5)

    assert grade(plain).value == 1.0
    assert grade(hinted).value == 1.0
    assert grade(hinted, {"scale": 0.25}).value == 0.25
    assert grade(second_generation).value == 0.5


class Settings(BaseModel):
    threshold: float


class Typed(Grader):
    range = (0.0, 2.0)
    needs_label = True

    def __init__(self, config: Settings | None = None) -> None:
        super().__init__(config)

    async def grade(self, ctx: GraderContext) -> Score:
        return Score(2.0, f"{self.config}", {"n": 1})


class Configured(Grader):
    def __init__(self, config: Settings) -> None:
        super().__init__(config)

    async def grade(self, ctx: GraderContext) -> float:
        threshold: float = self.config.threshold
        return threshold


def test_grader_classes() -> None:
    assert grade(Typed) == Score(2.0, "None", {"n": 1})
    assert grade(Typed()).value == 2.0
    assert PythonGrader(Typed).range == (0.0, 2.0)
    assert PythonGrader(Typed).needs_label
    assert grade(Configured, {"threshold": 0.5}).value == 0.5
    with pytest.raises(GraderMisfit, match="`threshold` of the config of Configured must be a number, found a string"):
        PythonGrader(Configured, {"threshold": "high"})
    with pytest.raises(GraderMisfit, match="exists already"):
        PythonGrader(Typed(), {"threshold": 1})


class NotAsync(Grader):
    def grade(self, ctx: GraderContext) -> float:  # type: ignore[override]
        return 1.0


class Half(Grader):
    pass


class Unrelated:
    pass


def _no_fit(solution: str, answer: str) -> float:
    return 1.0


def _both(solution_str: str, messages: list[Any]) -> float:
    return 1.0


def _needs_more(solution_str: str, ground_truth: str, extra_info: Any, weight: float) -> float:
    return 1.0


def _nothing() -> float:
    return 1.0


MISFITS: list[tuple[Any, dict[str, Any], str]] = [
    (_no_fit, {}, r"_no_fit\(solution, answer\) has none of the signatures of a grader: \(solution_str"),
    (_nothing, {}, "none of the signatures"),
    (_both, {}, "both solution_str and messages"),
    (_needs_more, {}, "requires weight, which a grader is not given"),
    (_needs_more, {"weigth": 1}, "config sets weigth, which _needs_more does not take; it takes weight"),
    (_needs_more, {"weight": 1, "ground_truth": "x"}, "config sets ground_truth, which _needs_more is given"),
    (3, {}, "a grader is a function or a Grader class"),
    (NotAsync, {}, "must be `async def grade"),
    (Half, {}, "does not define `async def grade"),
    (Unrelated, {}, "no subclass of runner.Grader"),
]


@pytest.mark.parametrize(("target", "config", "message"), MISFITS)
def test_misfits_are_found_before_anything_runs(target: Any, config: dict[str, Any], message: str) -> None:
    with pytest.raises(GraderMisfit, match=message):
        PythonGrader(target, config)


class Scalar:
    """A number of another library."""

    def __init__(self, value: float) -> None:
        self._value = value

    def item(self) -> float:
        return self._value


RETURNS: list[tuple[Any, float]] = [
    (1, 1.0),
    (0.5, 0.5),
    (True, 1.0),
    (False, 0.0),
    (-2, -2.0),
    (Scalar(0.25), 0.25),
    (Fraction(1, 4), 0.25),
    (Decimal("0.25"), 0.25),
    (Score(0.75), 0.75),
    ({"score": 1}, 1.0),
    ({"reward": 0.5, "reason": "half"}, 0.5),
]


@pytest.mark.parametrize(("returned", "value"), RETURNS)
def test_returns(returned: Any, value: float) -> None:
    assert grade(lambda ctx: returned).value == value


def test_returned_dict_keeps_its_reason_and_details() -> None:
    score = grade(lambda ctx: {"score": 1, "reason": "fine", "format": 0.5, "odd": {1, 2}})
    assert score.reason == "fine"
    assert score.details == {"format": 0.5, "odd": "{1, 2}"}


BAD: list[tuple[Any, str, str]] = [
    (float("nan"), "grader_bad_score", "must be a finite number, found nan"),
    (float("inf"), "grader_bad_score", "must be a finite number, found inf"),
    (10**400, "grader_bad_score", "must fit a float"),
    ("1.0", "grader_bad_score", "must be a number, found str"),
    ([1.0], "grader_bad_score", "must be a number, found list"),
    ((1.0, "reason"), "grader_bad_score", "must be a number, found tuple"),
    (Score(float("nan")), "grader_bad_score", "finite"),
    (Scalar(float("nan")), "grader_bad_score", "finite"),
    (Decimal("sNaN"), "grader_bad_score", "NaN"),
    ({}, "grader_bad_score", "exactly one of 'score' and 'reward', found nothing"),
    ({"score": 1, "reward": 1}, "grader_bad_score", "exactly one of"),
    ({"score": None}, "grader_bad_score", "found NoneType"),
    (None, "grader_silent", "forgot the reward"),
]


@pytest.mark.parametrize(("returned", "kind", "message"), BAD)
def test_what_is_no_score_is_an_error(returned: Any, kind: str, message: str) -> None:
    with pytest.raises(GraderError, match=message) as caught:
        grade(lambda ctx: returned)
    assert caught.value.kind == kind


def test_what_it_raises_names_the_users_line() -> None:
    def inner(solution_str: str, ground_truth: str) -> float:
        return 1 / len(solution_str.replace("4", ""))

    with pytest.raises(GraderError, match="inner raised ZeroDivisionError: division by zero") as caught:
        grade(inner)
    line = inner.__code__.co_firstlineno + 1
    assert caught.value.where == f"{__file__}:{line} in inner"


def raiser(error: BaseException) -> Any:
    def sync(ctx: Any) -> float:
        raise error

    return sync


def async_raiser(error: BaseException) -> Any:
    async def later(ctx: Any) -> float:
        raise error

    return later


@pytest.mark.parametrize("make", [raiser, async_raiser])
def test_what_passes_through_and_what_does_not(make: Any) -> None:
    for error in (SystemExit(1), StopIteration(), TimeoutError("mine"), KeyError("x"), AssertionError()):
        with pytest.raises(GraderError, match="raised") as caught:
            grade(make(error))
        assert caught.value.kind == "grader_error"
    with pytest.raises(NoLabel):
        grade(make(NoLabel("none")))
    with pytest.raises(JudgeUnavailable):
        grade(make(ModelUnavailable("down")))
    with pytest.raises(LimitReached):
        grade(make(LimitReached("cost")))


def test_sync_functions_leave_the_loop_alone_and_run_together() -> None:
    def slow(ctx: Any) -> float:
        time.sleep(0.2)
        return 1.0

    async def many() -> tuple[float, float]:
        grader, worst, started = PythonGrader(slow), 0.0, time.monotonic()
        tasks = [asyncio.ensure_future(grader.grade(context())) for _ in range(8)]
        while not all(task.done() for task in tasks):
            before = time.monotonic()
            await asyncio.sleep(0.005)
            worst = max(worst, time.monotonic() - before)
        return time.monotonic() - started, worst

    seconds, worst = asyncio.run(many())
    assert seconds < 1.2
    assert worst < 0.15


def test_a_function_that_never_returns_keeps_nobody_waiting() -> None:
    release = threading.Event()

    def hang(ctx: Any) -> float:
        release.wait(20)
        return 1.0

    async def run() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await PythonGrader(hang).grade(context())
        return (await PythonGrader(lambda ctx: 0.5).grade(context())).value

    assert asyncio.run(run()) == 0.5
    release.set()


def test_a_hung_function_does_not_keep_the_process_alive() -> None:
    import subprocess

    script = """
import asyncio, time
from runner.graders.grader import GraderContext
from runner.graders.python import PythonGrader
async def main():
    try:
        async with asyncio.timeout(0.2):
            await PythonGrader(lambda ctx: time.sleep(60)).grade(GraderContext(messages=[]))
    except TimeoutError:
        print("given up")
asyncio.run(main())
"""
    from pathlib import Path

    found = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=20,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert (found.stdout, found.stderr) == ("given up\n", "")


def test_given_up_threads_keep_their_slot_and_are_bounded() -> None:
    release = threading.Event()

    async def run() -> tuple[int, float]:
        threads = Threads(limit=2)
        hung = [asyncio.ensure_future(threads.run(lambda: release.wait(20))) for _ in range(5)]
        await asyncio.sleep(0.1)
        count = sum(thread.name == "grader" and thread.is_alive() for thread in threading.enumerate())
        for task in hung:
            task.cancel()
        await asyncio.gather(*hung, return_exceptions=True)
        release.set()
        return count, await threads.run(lambda: 0.5)

    before = sum(thread.name == "grader" and thread.is_alive() for thread in threading.enumerate())
    count, value = asyncio.run(run())
    assert count - before <= 2
    assert value == 0.5
