"""`[mcp.NAME]` in a file: checked, run by `eval` as a user would, and told apart from tools of the file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SERVER = Path(__file__).parent / "servers" / "official.py"

FILE = """
schema = 1
[workflow]
name = "sums"
user = "{{ row.q }}"
%(workflow)s
[model]
provider = "scripted"
[[model.rules]]
when = "turn == 0"
tool_calls = [%(call)s]
[[model.rules]]
reply = "{{ last }}"
[mcp.calc]
command = [%(command)s]
%(mcp)s
[graders.path]
kind = "trajectory"
expect = [{ tool = "calc/add", args = { a = 15 } }]
[graders.answer]
kind = "exact"
expect = "39"
"""

ADD = '{ name = "calc__add", arguments = { a = 15, b = 24 } }'


def play(folder: Path, **parts: str) -> tuple[int, str, list[dict[str, Any]]]:
    parts = {"workflow": "", "mcp": "", "call": ADD, "command": f'"{sys.executable}", "{SERVER}"', **parts}
    (folder / "workflow.toml").write_text(FILE % parts)
    (folder / "rows.jsonl").write_text('{"q": "15 + 24?"}\n{"q": "again?"}\n')
    command = [sys.executable, "-m", "runner.cli.main", "eval", "rows.jsonl"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    records = folder / "runs" / "sums" / "rollouts.jsonl"
    lines = records.read_text().splitlines() if records.exists() else []
    return ran.returncode, ran.stdout + ran.stderr, [json.loads(line) for line in lines if '"rollout_id"' in line]


def outcomes(records: list[dict[str, Any]]) -> list[tuple[str, float | None]]:
    return [(record["outcome"], record["reward"]) for record in records]


@pytest.mark.parametrize("scope", ["run", "rollout"])
def test_a_servers_tools_are_called_and_graded(tmp_path: Path, scope: str) -> None:
    code, said, records = play(tmp_path, mcp=f'scope = "{scope}"\ntools = ["add", "rem*"]')
    assert (code, outcomes(records)) == (0, [("scored", 1.0)] * 2), said


def test_a_server_that_dies_in_a_call_fails_no_rollout(tmp_path: Path) -> None:
    code, said, records = play(tmp_path, call='{ name = "calc__die", arguments = {} }')
    assert (code, outcomes(records)) == (0, [("scored", 0.0)] * 2), said
    assert "went away while it was asked" in json.dumps(records)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"command": '"no-such-program"'}, "there is no program `no-such-program`"),
        ({"workflow": 'tools = ["calc/ad"]'}, "`calc/ad` fits no tool of the MCP server; its tools: `calc/add`"),
        ({"mcp": 'tools = ["sub*"]'}, "`calc/sub*` fits no tool"),
        ({"mcp": 'url = "http://localhost:1/mcp"'}, "takes exactly one of `command`, `url`"),
        ({"workflow": 'tools = ["clac/add"]'}, "no tool is called `clac/add`"),
        ({"mcp": 'env = { KEY = { env = "NOT_SET_ANYWHERE" } }'}, "`NOT_SET_ANYWHERE` is not set"),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_spent(tmp_path: Path, parts: dict[str, str], words: str) -> None:
    code, said, records = play(tmp_path, **parts)
    assert (code, words in said, records) == (1, True, []), said
    assert "Traceback" not in said


def test_what_a_file_is_made_of_and_what_only_a_connection_can_say(tmp_path: Path) -> None:
    code, said, _ = play(tmp_path, command='"no-such-program"')
    assert (code, "known only when it is connected" in said) == (1, True), said
    more = '[tools.sum]\nbuiltin = "calculator"\n[tools.sh]\nbuiltin = "bash"\n[sandboxes.work]\nkind = "none"\n'
    (tmp_path / "workflow.toml").write_text((tmp_path / "workflow.toml").read_text() + more)
    command = [sys.executable, "-m", "runner.cli.main", "validate", "-v"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert [line.split(maxsplit=1) for line in (ran.stdout + ran.stderr).splitlines()[1:]] == [
        ["tools", "sum (built in), sh (built in)"],
        ["servers", "calc (no-such-program)"],
        ["sandboxes", "work (none)"],
        ["graders", "path (trajectory), answer (exact)"],
    ], ran.stderr
