"""`eval`, `plan`, `show`, `regrade`, `compare`, `export` as a user types them: real processes, signals, pipes."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

WORKFLOW = """\
[workflow]
name  = "sums"
user  = "{{ row.question }}"
label = "{{ row.answer }}"

[model]
id       = "scripted/pupil"
provider = "scripted"

[[model.rules]]
reply = "{{ row.answer }}"
delay = "DELAY"

[graders.answer]
kind = "exact"

[dataset]
path = "rows.jsonl"
id   = "id"

[eval]
concurrency = 8
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, rows=20, delay="1ms")
    return tmp_path


def write(folder: Path, rows: int, delay: str) -> None:
    (folder / "workflow.toml").write_text(WORKFLOW.replace("DELAY", delay))
    lines = [json.dumps({"id": f"q{n}", "question": f"{n}?", "answer": str(n)}) for n in range(rows)]
    (folder / "rows.jsonl").write_text("\n".join(lines) + "\n")


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "runner.cli.main", *words],
        cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": str(Path(__file__).parents[2]), "PYTHONUTF8": "1"},
    )  # fmt: skip


def run(folder: Path, *words: str, code: int = 0) -> tuple[str, str]:
    process = start(folder, *words)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    return out, err


def lines(folder: Path) -> list[dict[str, Any]]:
    text = (folder / "runs" / "sums" / "rollouts.jsonl").read_text()
    return [json.loads(line) for line in text.split("\n")[:-1]]


def test_eval_talks_on_stderr_and_answers_on_stdout(folder: Path) -> None:
    out, err = run(folder, "eval")
    assert err.startswith("runs/sums  20 rows x 1 attempt: 20 to run.\n")
    assert "20/20 rollouts" in err
    assert "✓ complete" in out and "\x1b" not in out + err


def test_json_is_all_there_is_on_stdout_and_nothing_on_stderr(folder: Path) -> None:
    out, err = run(folder, "eval", "--json", "--attempts", "2", "--rows", "3,5-6")
    summary = json.loads(out)
    assert err == ""
    assert (summary["rows"], summary["attempts"], summary["exit_code"]) == (3, 2, 0)
    assert summary == {**summary, **json.loads((folder / "runs/sums/summary.json").read_text())}


def test_plan_writes_nothing(folder: Path) -> None:
    out, _ = run(folder, "plan")
    assert out == "runs/sums  20 rows x 1 attempt: 20 to run.\n"
    assert not (folder / "runs").exists()
    run(folder, "eval", "-q")
    made = json.loads(run(folder, "plan", "--json", "--set", "sampling.temperature=0.1")[0])
    assert (made["rerun"], made["reuse"]) == (20, 0)
    assert "sampling.temperature changed (command line: --set sampling.temperature=0.1)" in made["reasons"][0]


def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(folder: Path) -> None:
    write(folder, rows=60, delay="150ms")
    process = start(folder, "eval")
    wait_for_lines(folder, 8)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert "the same command goes on where this one stopped" in err
    assert "✗ incomplete" in out
    before = len(lines(folder))
    assert 8 <= before < 60
    _, err = run(folder, "eval")
    assert f"{before} re-used, {60 - before} to run." in err
    assert len(lines(folder)) == 60


def test_a_second_ctrl_c_ends_at_once(folder: Path) -> None:
    write(folder, rows=20, delay="30s")
    process = start(folder, "eval")
    wait_for((folder / "runs/sums/rollouts.jsonl").exists)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    started = time.monotonic()
    _, err = process.communicate(timeout=10)
    assert time.monotonic() - started < 2
    assert process.returncode == 130
    assert err.endswith("interrupted\n")


def test_kill_9_loses_nothing_and_repeats_nothing(folder: Path) -> None:
    write(folder, rows=200, delay="20ms")
    rng = random.Random(9)
    for _ in range(4):
        process = start(folder, "eval")
        time.sleep(0.4 + rng.random() * 0.2)
        process.kill()
        process.communicate()
    run(folder, "eval", "-q")
    keys = [(line["row_id"], line["attempt"]) for line in lines(folder)]
    assert len(keys) == len(set(keys)) == 200


def test_show_prints_a_summary_a_list_and_a_transcript(folder: Path) -> None:
    run(folder, "eval", "-q")
    assert "✓ complete" in run(folder, "show", "runs/sums")[0]
    assert json.loads(run(folder, "show", "runs/sums", "--json")[0])["rows"] == 20
    listed = run(folder, "show", "runs/sums", "--list")[0].splitlines()
    assert len(listed) == 20 and listed[0].startswith("✓ q0/0")
    assert run(folder, "show", "runs/sums", "--failing")[0] == ""
    assert run(folder, "show", "runs/sums", "q3/0")[0].startswith("row q3, attempt 0")
    assert json.loads(run(folder, "show", "runs/sums", "3", "--json")[0])["row_id"] == "q3"
    _, err = run(folder, "show", "runs/sums", "q99", code=1)
    assert err.startswith("error: ") and "hint: " in err
    _, err = run(folder, "show", "runs/sum", code=1)
    assert "did you mean `runs/sums`?" in err


def test_regrade_compare_and_export(folder: Path) -> None:
    run(folder, "eval", "-q")
    run(folder, "eval", "-q", "--name", "two")
    out, _ = run(folder, "compare", "runs/sums", "runs/two")
    assert "paired over 20 rows" in out
    _, err = run(folder, "regrade", "runs/two", "--set", 'graders.answer.expect="5"')
    assert "20 graded again, 19 with another reward" in err
    _, err = run(folder, "compare", "runs/sums", "runs/two", code=1)
    assert "the graders differ (graders.answer.expect)" in err and "--force" in err
    found = json.loads(run(folder, "compare", "runs/sums", "runs/two", "--force", "--json")[0])
    assert len(found["flips"]["pass_to_fail"]) == 19
    out, err = run(folder, "export", "runs/two", "--format", "jsonl", "--min-reward", "1")
    assert [json.loads(line)["row_id"] for line in out.splitlines()] == ["q5"]
    assert err == "1 row; left out: 19 below the least reward\n"
    out, _ = run(folder, "export", "runs/two", "--format", "trl-sft", "-o", "rows.out", "--json")
    assert json.loads(out)["rows"] == len((folder / "rows.out").read_text().splitlines()) == 20


def test_a_terminal_is_redrawn_and_given_back(folder: Path) -> None:
    import pty

    write(folder, rows=60, delay="40ms")
    pid, descriptor = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.environ.update(TERM="xterm-256color", COLUMNS="80", PYTHONPATH=str(Path(__file__).parents[2]))
        os.execv(sys.executable, [sys.executable, "-m", "runner.cli.main", "eval"])
    seen = b""
    while True:
        try:
            block = os.read(descriptor, 65536)
        except OSError:  # Linux says EIO when the other side has closed
            break
        if not block:
            break
        seen += block
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(descriptor)
    text = seen.decode()
    assert "running" in text and "/60" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is back


def test_a_matrix_runs_each_cell_in_its_own_folder(folder: Path) -> None:
    with (folder / "workflow.toml").open("a") as file:
        file.write('[matrix]\naxes = { "sampling.temperature" = [0.0, 0.7] }\n')
    out, _ = run(folder, "eval")
    assert sorted(path.name for path in (folder / "runs").iterdir()) == [
        "sums@sampling.temperature-0.0",
        "sums@sampling.temperature-0.7",
    ]
    assert "cell" in out and "sampling.temperature=0.7" in out
    assert len(json.loads(run(folder, "eval", "--json")[0])["cells"]) == 2


def test_a_failed_gate_is_exit_2_and_too_many_failures_exit_3(folder: Path) -> None:
    run(folder, "eval", "-q", "--set", 'eval.gates=[{metric="reward", min=1.1}]', code=2)
    (folder / "rows.jsonl").write_text('{"id": "q0", "question": "0?", "answer": "0"}\n{"id": "q1", "answer": "1"}\n')
    _, err = run(folder, "eval", "-q", code=3)
    assert "50.0% of the rollouts failed" in err


def wait_for_lines(folder: Path, count: int) -> None:
    wait_for(lambda: (folder / "runs/sums/rollouts.jsonl").exists() and len(lines(folder)) >= count)


def wait_for(holds: Any) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_model_named_for_a_scripted_file_is_refused_unless_it_is_asked(folder: Path) -> None:
    out, err = run(folder, "eval", "--model", "openai/gpt-5-mini", code=1)
    assert out == "" and "this file's answers are its own" in err and "hint: " in err
    nowhere = ["model.provider=openai", "model.base_url=http://127.0.0.1:9/v1", "model.retries.attempts=1"]
    out, _ = run(folder, "eval", "--model", "openai/m", *(f"--set={setting}" for setting in nowhere), code=3)
    assert "nothing listens there" in out
