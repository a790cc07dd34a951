"""`eval --ask` and `approve` in a file: denied where nobody is asked, asked at a terminal, checked by `validate`."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

FILE = """
schema = 1
[workflow]
name = "careful"
user = "{{ row.q }}"
[model]
provider = "scripted"
[[model.rules]]
when = "turn == 0"
tool_calls = [{ name = "pay", arguments = { amount = "{{ row.amount }}" } }]
[[model.rules]]
reply = "{{ last }}"
[tools.pay]
call = "./tools.py:pay"
[[tools.pay.approve]]
when = "args.amount > 1000"
action = "deny"
reason = "over the limit"
[[tools.pay.approve]]
when = "args.amount > 10"
action = "ask"
"""


def project(folder: Path, file: str = FILE) -> list[str]:
    (folder / "workflow.toml").write_text(file)
    (folder / "tools.py").write_text('def pay(amount: int) -> str:\n    return f"paid {amount}"\n')
    rows = [{"q": str(amount), "amount": amount} for amount in (5, 50, 5000)]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [sys.executable, "-m", "runner.cli.main", "eval", "rows.jsonl", "--set", "eval.concurrency=1"]


def answers(folder: Path) -> list[str]:
    lines = (folder / "runs" / "careful" / "rollouts.jsonl").read_text().splitlines()
    records = sorted((json.loads(line) for line in lines if '"rollout_id"' in line), key=lambda one: one["row"])
    return [message["content"] for one in records for message in one["messages"] if message["role"] == "tool"]


def test_without_anybody_to_ask_a_call_is_denied(tmp_path: Path) -> None:
    ran = subprocess.run(project(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    paid, unasked, denied = answers(tmp_path)
    assert (paid, "nobody is there" in unasked, "over the limit" in denied) == ("paid 5", True, True)


def test_the_person_at_the_terminal_is_asked_and_heard(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    ran = subprocess.Popen([*project(tmp_path), "--ask"], cwd=tmp_path, stdin=theirs, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, text=True)  # fmt: skip
    os.close(theirs)
    os.write(ours, b"yes\n")
    _, talk = ran.communicate(timeout=60)
    os.close(ours)
    assert ran.returncode == 0, talk
    assert "May this call be made?" in talk
    assert '"amount": 50' in talk
    assert answers(tmp_path)[:2] == ["paid 5", "paid 50"]


def test_asking_without_a_terminal_and_rules_that_are_none_are_refused(tmp_path: Path) -> None:
    command = [*project(tmp_path), "--ask"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False, input="")
    assert (ran.returncode, "asks at the terminal" in ran.stderr) == (1, True), ran.stderr
    project(tmp_path, FILE.replace('args.amount > 10"', 'arg.amount > 10"').replace('"deny"', '"forbid"'))
    validate = [sys.executable, "-m", "runner.cli.main", "validate"]
    ran = subprocess.run(validate, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert "workflow.toml:" in ran.stdout
    assert "must be `allow`, `deny` or `ask`" in ran.stdout or "one of" in ran.stdout, ran.stdout
