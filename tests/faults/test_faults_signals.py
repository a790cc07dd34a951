"""Ctrl-C, SIGTERM, a reader that leaves, and two processes that want one run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import Any

import pytest

SLOW = ("--set", 'model.rules=[{ reply = "{{ row.a }}", delay = "DELAY" }]')


def slow(delay: str) -> tuple[str, ...]:
    return (SLOW[0], SLOW[1].replace("DELAY", delay))


def grown(project: Any, lines: int) -> Any:
    return lambda: project.journal().exists() and project.journal().read_bytes().count(b"\n") >= lines


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_ends_cleanly_and_says_how_to_go_on(project: Any, until: Any, number: signal.Signals) -> None:
    project.rows(400)
    process = project.start("eval", "--concurrency", "8", *slow("40ms"))
    until(grown(project, 20))
    process.send_signal(number)
    out, err = process.communicate(timeout=10)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "stopping: " in err and "the same command goes on" in err
    assert "incomplete" in out
    kept = len(project.lines())
    assert 20 <= kept < 400
    assert {line["outcome"] for line in project.lines()} == {"scored"}, "what was running had time to finish"
    done = project.run("eval", "--concurrency", "64", *slow("40ms"))
    assert f"{kept} re-used, {400 - kept} to run" in done.err
    assert len(project.lines()) == len(project.last()) == 400


def test_what_does_not_finish_in_time_is_cancelled_and_owed(project: Any, until: Any) -> None:
    project.write("rows.jsonl", "".join(json.dumps({"id": f"q{n}", "q": str(n), "a": "1"}) + "\n" for n in range(12)))
    rules = 'model.rules=[{ when = "row.id in [\'q1\', \'q4\']", reply = "1", delay = "60s" }, { reply = "1" }]'
    process = project.start("eval", "--set", rules, "--concurrency", "6")
    until(grown(project, 10))
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=15)
    assert process.returncode == 130, err
    assert "incomplete" in out
    ended = {line["row_id"]: line["outcome"] for line in project.lines()}
    assert {row for row, outcome in ended.items() if outcome == "cancelled"} == {"q1", "q4"}
    assert project.summary()["reward"]["n"] == 10
    assert "10 re-used, 2 to run. 2 had been cancelled" in project.run("plan", "--set", rules).out


def test_two_signals_end_at_once(project: Any, until: Any) -> None:
    process = project.start("eval", *slow("60s"))
    until(project.journal().exists)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    assert any("Ctrl-C again ends at once" in line for line in iter(process.stderr.readline, ""))
    started = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=5)
    assert time.monotonic() - started < 3, "five seconds of grace were not waited for"
    assert process.returncode == 130 and err.endswith("interrupted\n")
    project.run("eval", "-q")


def test_a_terminals_ctrl_c_reaches_worker_processes_too(project: Any, until: Any) -> None:
    """A terminal signals the whole group: the process that checks mathematics must not answer with a traceback."""
    rows = [{"id": f"q{n}", "q": str(n), "a": f"\\frac{{{2 * n + 2}}}{{{4 * n + 4}}} + x"} for n in range(300)]
    project.write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    rules = 'model.rules=[{ reply = "x + \\\\frac{1}{2}", delay = "30ms" }]'
    math = ("--set", 'graders.answer.kind="math"', "--set", rules, "--concurrency", "4")
    process = project.start("eval", *math, start_new_session=True)
    until(grown(project, 12))
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert "Traceback" not in err and "KeyboardInterrupt" not in err, err
    assert {line["outcome"] for line in project.lines()} == {"scored"}, project.lines()[-1]["failure"]
    assert {line["reward"] for line in project.lines()} == {1.0}


def test_ctrl_c_at_any_moment_of_a_short_run(project: Any) -> None:
    """From the first import to the summary: never a traceback, never a wrong code, always resumable."""
    began = time.monotonic()
    project.run("--version")
    start = time.monotonic() - began  # the interpreter's own, and the first imports
    for step in range(10):
        process = project.start("eval", "--json", "--concurrency", "4", *slow("8ms"))
        time.sleep(start + 0.07 * step)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=15)
        assert "Traceback" not in err, (step, err)
        assert process.returncode in (0, 130), (step, err)
        assert out == "" or json.loads(out)["rows"] == 20, step
    project.run("eval", "-q", *slow("8ms"))
    assert sorted(project.last()) == sorted((f"q{n}", 0) for n in range(20))
    assert {line["outcome"] for line in project.last().values()} == {"scored"}


def test_the_second_of_two_runs_is_told_who_has_the_folder(project: Any, until: Any) -> None:
    first = project.start("eval", *slow("60s"))
    until(project.journal().exists)
    for words in (("eval",), ("eval", "--fresh"), ("regrade", "runs/it")):
        started = time.monotonic()
        done = project.run(*words, code=1)
        assert f"pid {first.pid}" in done.err and "hint: " in done.err, words
        assert done.out == "" and time.monotonic() - started < 5
    assert first.poll() is None, "the first one is not disturbed"
    assert "20 to run" in project.run("plan").out, "a plan only reads"
    first.kill()
    first.communicate()
    project.run("eval", "-q")  # the kernel dropped the lock with its process
    assert len(project.last()) == 20


def test_a_reader_that_leaves_is_no_error(project: Any) -> None:
    project.rows(3_000)
    project.run("eval", "-q", "--concurrency", "64")
    for words in (["show", "runs/it", "--list"], ["export", "runs/it", "--format", "jsonl"], ["eval", "--json"]):
        process = project.start(*words)
        assert process.stdout is not None and process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == "", words
        assert process.wait(timeout=20) == 0, words


def test_streams_that_are_closed_from_the_start(project: Any) -> None:
    script = project.start("--version").args[0]
    project.stop()
    for shell in ("eval -q >&-", "eval -q 2>&-", "eval -q </dev/null >&- 2>&-", "eval | true", "show runs/it | true"):
        done = subprocess.run(
            ["bash", "-c", f"{script} {shell}; exit ${{PIPESTATUS[0]}}"], cwd=project.folder, env=dict(os.environ),
            capture_output=True, text=True, check=False, timeout=20,
        )  # fmt: skip
        assert done.returncode == 0, (shell, done.stderr)
        assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, (shell, done.stderr)
    assert len(project.last()) == 20
