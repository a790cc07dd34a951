"""`eval --tools record|replay`: what tools answered once is given again, and nothing else ever is."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

SERVER = Path(__file__).parents[1] / "tools" / "mcp" / "servers" / "official.py"

FILE = """
schema = 1
[workflow]
name = "dice"
user = "{{ row.q }}"
[model]
provider = "scripted"
[[model.rules]]
when = "turn < 2"
tool_calls = [{ name = "roll", arguments = { sides = "{{ row.sides }}" } }]
[[model.rules]]
reply = "{{ last }}"
[tools.roll]
call = "./tools.py:roll"
"""

TOOLS = """
import os
from pathlib import Path

def roll(sides: int) -> str:
    count = Path(__file__).with_name("count")
    number = int(count.read_text()) + 1 if count.exists() else 1
    count.write_text(str(number))
    if os.environ.get("FORBIDDEN"):
        raise SystemExit("the tool was called")
    if sides == 13:
        raise ValueError("no such die")
    return f"{sides} sides, throw {number}"
"""


def project(folder: Path, rows: list[dict[str, Any]], file: str = FILE) -> None:
    (folder / "workflow.toml").write_text(file)
    (folder / "tools.py").write_text(TOOLS)
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def evaluate(folder: Path, *words: str, code: int = 0, env: dict[str, str] | None = None) -> list[dict[str, Any]]:
    command = [
        sys.executable,
        "-m",
        "runner.cli.main",
        "eval",
        "rows.jsonl",
        "--fresh",
        "--set",
        "eval.concurrency=1",
        *words,
    ]
    import os

    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False,
                         env={**os.environ, **(env or {})})  # fmt: skip
    assert ran.returncode == code, ran.stdout + ran.stderr
    assert "Traceback" not in ran.stderr
    runs = sorted((folder / "runs").glob("*/rollouts.jsonl"), key=lambda path: path.stat().st_mtime)
    lines = runs[-1].read_text().splitlines()
    return sorted((json.loads(line) for line in lines if '"rollout_id"' in line), key=lambda one: one["row"])


def said(record: dict[str, Any]) -> list[str]:
    return [message["content"] for message in record["messages"] if message["role"] == "tool"]


ROWS = [{"q": "a", "sides": 6}, {"q": "b", "sides": 13}]


def test_a_replay_gives_what_was_recorded_and_calls_nobody(tmp_path: Path) -> None:
    project(tmp_path, ROWS)
    first = evaluate(tmp_path, "--tools", "record")
    assert [len(said(record)) for record in first] == [2, 2]
    assert said(first[0])[0] != said(first[0])[1]
    cassette = tmp_path / "cassettes" / "dice.jsonl"
    assert len(cassette.read_text().splitlines()) == 4
    again = evaluate(tmp_path, "--tools", "replay", env={"FORBIDDEN": "yes"})
    assert [said(record) for record in again] == [said(record) for record in first]
    assert "no such die" in said(again[1])[0]
    assert [each["status"] for each in again[1]["tools"]] == [each["status"] for each in first[1]["tools"]]


def test_a_call_that_is_not_there_fails_its_rollout_and_says_so(tmp_path: Path) -> None:
    project(tmp_path, ROWS[:1])
    evaluate(tmp_path, "--tools", "record", "--cassette", "tape.jsonl")
    project(tmp_path, [{"q": "a", "sides": 6}, {"q": "c", "sides": 20}])
    records = evaluate(tmp_path, "--tools", "replay", "--cassette", "tape.jsonl", code=3)
    assert [record["outcome"] for record in records] == ["ungraded", "failed"]
    failure = records[1]["failure"]
    assert (failure["boundary"], failure["kind"]) == ("tool", "cassette_miss")
    assert '`roll` with {"sides": 20}' in failure["message"]
    assert "--tools record" in failure["message"]


def test_attempts_beyond_the_recorded_ones_take_what_all_agree_on(tmp_path: Path) -> None:
    project(tmp_path, [{"q": "a", "sides": 13}, {"q": "b", "sides": 13}])
    evaluate(tmp_path, "--tools", "record")
    records = evaluate(tmp_path, "--tools", "replay", "--attempts", "2")
    assert [record["outcome"] for record in records] == ["ungraded"] * 4


def test_a_cassette_that_is_none_is_said_before_anything_runs(tmp_path: Path) -> None:
    project(tmp_path, ROWS)
    command = [sys.executable, "-m", "runner.cli.main", "eval", "rows.jsonl", "--tools", "replay"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, "no such file" in ran.stderr, "--tools record" in ran.stderr) == (1, True, True), ran.stderr
    (tmp_path / "cassettes").mkdir()
    (tmp_path / "cassettes" / "dice.jsonl").write_text('{"schema": "recording/1"}\n')
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, "dice.jsonl:1 is no line of a tool cassette" in ran.stderr) == (1, True), ran.stderr


def test_the_tools_of_a_server_are_on_the_cassette_too(tmp_path: Path) -> None:
    calls = 'tool_calls = [{ name = "calc__add", arguments = { a = "{{ row.sides }}", b = 1 } }]'
    head, _, _ = FILE.partition("[tools.roll]")
    file = head.replace(head[head.index("tool_calls") :].splitlines()[0], calls)
    server = f'[mcp.calc]\ncommand = ["{sys.executable}", "{SERVER}"]\n'
    project(tmp_path, ROWS[:1], file + server)
    assert said(evaluate(tmp_path, "--tools", "record")[0]) == ["7", "7"]
    (tmp_path / "workflow.toml").write_text(file + '[mcp.calc]\ncommand = ["gone"]\n')
    assert said(evaluate(tmp_path, "--tools", "replay")[0]) == ["7", "7"]
