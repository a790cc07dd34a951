"""Graders that raise, hang or return what is no number: ungraded, and never a score of 0."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import pytest

WORKFLOW = """\
[workflow]
name  = "it"
user  = "{{ row.how }}"
label = "1"

[model]
id       = "scripted/pupil"
provider = "scripted"
rules    = [{ reply = "1" }]

[graders.thread]
kind    = "python"
call    = "./graders.py:thread"
timeout = "500ms"
[graders.loop]
kind    = "python"
call    = "./graders.py:loop"
timeout = "500ms"

[dataset]
path = "rows.jsonl"
id   = "how"
"""

GRADERS = """\
import asyncio, sys, time

def _do(how):
    if how == "raise": raise ValueError("it is broken")
    if how == "exit": sys.exit(0)
    if how == "cancel": raise asyncio.CancelledError
    if how == "stop": raise StopIteration
    if how == "nan": return float("nan")
    if how == "inf": return float("inf")
    if how == "text": return "1.0"
    if how == "none": return None
    if how == "list": return [1.0]
    if how == "two": return {"score": 1.0, "reward": 0.0}
    if how == "nan inside": return {"score": float("nan"), "reason": "odd"}
    if how == "odd details": return {"score": 0.5, "reason": "half \\ud83d", "object": object(), "nan": float("nan")}
    if how == "too much": return {"score": 1.0, "reason": "x" * 5_000_000}
    return 1.0

def thread(solution_str, ground_truth, extra_info):
    how = extra_info.get("how") or extra_info["row"]["how"]
    if how == "hang": time.sleep(30)
    return _do(how)

async def loop(solution_str, ground_truth, extra_info):
    how = extra_info.get("how") or extra_info["row"]["how"]
    if how == "hang": await asyncio.sleep(30)
    return _do(how)
"""

KINDS = {
    "raise": "grader_error",
    "exit": "grader_error",
    "cancel": "grader_error",
    "stop": "grader_error",
    "nan": "grader_bad_score",
    "inf": "grader_bad_score",
    "text": "grader_bad_score",
    "none": "grader_silent",
    "list": "grader_bad_score",
    "two": "grader_bad_score",
    "nan inside": "grader_bad_score",
    "hang": "grader_timeout",
}


@pytest.fixture
def graded(project: Any) -> Any:
    project.write("workflow.toml", WORKFLOW)
    project.write("graders.py", GRADERS)
    hows = [*KINDS, "odd details", "too much", *(f"fine {n}" for n in range(30))]
    project.write("rows.jsonl", "".join(json.dumps({"how": how}) + "\n" for how in hows))
    return project


def test_a_grader_that_cannot_speak_leaves_no_score(graded: Any) -> None:
    started = time.monotonic()
    done = graded.run("eval", "--json")
    assert time.monotonic() - started < 10
    summary = json.loads(done.out)
    assert summary["outcomes"]["ungraded"] == len(KINDS) and summary["outcomes"]["scored"] == 32
    assert summary["reward"]["n"] == 32, "no ungraded rollout is in the mean"
    assert summary["reward"]["mean"] == pytest.approx(31.5 / 32)
    for how, kind in KINDS.items():
        line = graded.last()[how, 0]
        assert (line["outcome"], line["reward"], line["stop_reason"]) == ("ungraded", None, kind), how
        assert (line["failure"]["boundary"], line["failure"]["kind"]) == ("grader", kind), how
        assert all(score["value"] is None for score in line["scores"].values()), how
    odd = graded.last()["odd details", 0]
    assert odd["reward"] == 0.5
    assert graded.last()["too much", 0]["reward"] == 1.0
    exported = graded.run("export", "runs/it", "--format", "jsonl").out.splitlines()
    assert len(exported) == 32, "training rows are made of scored rollouts only"


def test_a_mended_grader_grades_again_without_playing(graded: Any) -> None:
    graded.run("eval", "-q")
    before = graded.last()
    graded.write("graders.py", GRADERS.replace('    if how == "raise"', '    return 1.0\n    if how == "raise"')
                 .replace("sleep(30)", "sleep(0)"))  # fmt: skip
    done = graded.run("eval")
    assert "44 re-graded, 0 to run" in done.err and "graders." in done.err
    after = graded.last()
    assert {line["reward"] for line in after.values()} == {1.0}
    assert all(after[key]["messages"] == before[key]["messages"] for key in before)


@pytest.mark.parametrize(
    "call", ["./graders.py:grade", "graders:grade", "package.graders:grade", "./by_helper.py:grade"]
)
def test_of_two_saves_within_a_second_the_later_one_grades(graded: Any, call: str) -> None:
    """Python alone would take what it compiled from the first for current: same second, same size."""
    (graded.folder / "package").mkdir()
    source = "def grade(solution_str, ground_truth, extra_info):\n    return {}\n"
    graders = ("graders.py", "package/graders.py")
    graded.write("by_helper.py", "from graders import grade\n")
    graded.write("rows.jsonl", '{"how": "fine"}\n')
    graded.write("workflow.toml", WORKFLOW.partition("[graders.thread]")[0] + f'''
[graders.only]
kind = "python"
call = "{call}"
[dataset]
path = "rows.jsonl"
id   = "how"
''')  # fmt: skip
    for value in (0.25, 0.75):
        for name in graders:
            graded.write(name, source.format(value))
            os.utime(graded.folder / name, (1_700_000_000, 1_700_000_000))
        graded.run("eval", "-q")
        graded.run("regrade", "runs/it", "--all")
        assert [line["reward"] for line in graded.last().values()] == [value]


def test_retry_failed_grades_the_ungraded_again(graded: Any) -> None:
    graded.run("eval", "-q")
    done = graded.run("eval", "--retry-failed")
    assert f"{len(KINDS)} re-graded" in done.err
    assert graded.summary()["outcomes"]["ungraded"] == len(KINDS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_regrade_that_is_stopped_is_finished_by_the_next_one(graded: Any, until: Any, number: signal.Signals) -> None:
    graded.write("rows.jsonl", "".join(json.dumps({"how": f"fine {n}"}) + "\n" for n in range(40)))
    graded.run("eval", "-q")
    before = graded.last()
    graded.write("graders.py", GRADERS.replace("return _do(how)\n\nasync", "time.sleep(0.05)\n    return 0.5\n\nasync"))
    process = graded.start("regrade", "runs/it", "--set", "eval.concurrency=2")
    until(lambda: graded.journal().read_bytes().count(b"\n") > 45)
    process.send_signal(number)
    _, err = process.communicate(timeout=10)
    assert process.returncode == (130 if number is signal.SIGINT else -9), err
    assert "Traceback" not in err
    assert graded.last().keys() == before.keys()
    done = graded.run("regrade", "runs/it")
    assert "40 graded again" not in done.err and "graded again" in done.err
    assert {line["reward"] for line in graded.last().values()} == {0.75}
    assert graded.summary()["reward"]["n"] == 40
    assert all(graded.last()[key]["messages"] == before[key]["messages"] for key in before)


def test_ctrl_c_at_any_moment_of_a_regrade(graded: Any) -> None:
    """Wherever it hits the command, the event loop or the journal: one word, and the next regrade goes on."""
    graded.write("rows.jsonl", "".join(json.dumps({"how": f"fine {n}"}) + "\n" for n in range(200)))
    graded.run("eval", "-q")
    before = graded.last()
    for step in range(12):
        graded.write("graders.py", GRADERS.replace("return 1.0", f"return 0.{step + 10}"))
        process = graded.start("regrade", "runs/it", "--set", "eval.concurrency=8")
        time.sleep(0.3 + 0.05 * step)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=15)
        assert (process.returncode == 130 and err == "interrupted\n") or process.returncode == 0, (step, err)
        assert "Traceback" not in err, (step, err)
    graded.run("regrade", "runs/it")
    assert graded.last().keys() == before.keys()
    assert {line["reward"] for line in graded.last().values()} == {0.21}


REFUSES = """\
import asyncio, sys

async def loop(solution_str, ground_truth, extra_info):
    print("grading", file=sys.stderr, flush=True)
    try:
        await asyncio.sleep(60)
    finally:
        await asyncio.sleep(60)

async def thread(solution_str, ground_truth, extra_info):
    return 1.0
"""


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_while_a_grader_refuses_to_end(graded: Any, times: int) -> None:
    """It gets a moment to clean up, and no more; a second Ctrl-C gives it none."""
    graded.write("rows.jsonl", '{"how": "fine"}\n')
    graded.run("eval", "-q")
    graded.write("graders.py", REFUSES)
    graded.write("workflow.toml", WORKFLOW.replace("500ms", "60s"))
    process = graded.start("regrade", "runs/it")
    assert process.stderr.readline() == "grading\n"
    process.send_signal(signal.SIGINT)
    if times == 2:
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (130, "interrupted\n")
    assert len(graded.last()) == 1


def test_an_optional_grader_that_breaks_does_not_cost_the_reward(graded: Any) -> None:
    graded.run("eval", "-q", "--set", "graders.thread.required=false", "--set", "graders.loop.required=false",
               "--rows", "0-11")  # fmt: skip
    lines = graded.last().values()
    assert all(line["outcome"] == "ungraded" and line["reward"] is None for line in lines), "none was left to speak"
