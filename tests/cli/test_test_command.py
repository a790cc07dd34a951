"""`osmosis-run test`: tests of whole rollouts, and the JUnit file that a CI reads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from runner.cli.junit import Case, Suite, junit_xml

ROOT = Path(__file__).parents[2]
Run = Callable[..., "subprocess.CompletedProcess[str]"]

HEAD = """\
[workflow]
system = "Add."
user = "{{ row.q }}"
label = "{{ row.a }}"
[tools.add]
call = "./tools.py:add"
tests = [{ args = { a = 1, b = 2 }, expect = 3 }, { args = { a = 1 }, expect = 1 }]
[graders.answer]
kind = "exact"
extract = { after = "####" }
tests = [{ output = "#### 5", label = "5", expect = 1.0 }]
[limits]
turns = 3
[dataset]
path = "rows.jsonl"
"""

ADDS = """
[[tests]]
name = "adds"
row = { q = "2 and 3", a = 5 }
expect = { EXPECT }
[[tests.rules]]
when = "turn == 0"
tool_calls = [{ name = "add", arguments = { a = 2, b = 3 } }]
[[tests.rules]]
reply = "#### {{ last }}"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text('def add(a: int, b: int) -> int:\n    "Add."\n    return a + b\n')
    (tmp_path / "rows.jsonl").write_text('{"q": "zero", "a": 0}\n{"q": "one", "a": 1}\n')
    return tmp_path


def rollouts_of(osmosis: Run, folder: Path, toml: str) -> list[dict[str, Any]]:
    (folder / "workflow.toml").write_text(toml)
    done = osmosis("test", "--json")
    assert done.returncode in (0, 1), done.stderr
    return [test for test in json.loads(done.stdout)["tests"] if test["part"] == "tests"]


EXPECTED = [
    ('stop_reason = "final_answer", reward = 1, tool_calls = ["add"], contains = "5", matches = "^#+ 5$"', ""),
    ('tool_calls = [{ tool = "add", args = { a = 2 } }], reward = { min = 0.5 }', ""),
    ("reward = 0", "expected a reward of 0, found 1 (answer 1, '5' is '5')"),
    ("reward = { max = 0.5 }", "expected a reward of at most 0.5, found 1 (answer 1, '5' is '5')"),
    ("tool_calls = []", "expected exactly 0 tool calls, found 1: add"),
    (
        'tool_calls = [{ tool = "add", args = { a = 3 } }]',
        'call 1 must be add with a=3, found add({"a": 2, "b": 3})',
    ),
    ('stop_reason = "max_turns"', 'expected the stop reason "max_turns", found "final_answer"'),
    (
        'contains = "6", matches = "7"',
        'expected the answer to contain "6", found "#### 5"; expected the answer to match "7", found "#### 5"',
    ),
]
"""What a test expects, and what it says when the rollout below does not do that."""


def test_what_a_rollout_is_expected_to_do(osmosis: Run, folder: Path) -> None:
    tests = [ADDS.replace('"adds"', f'"{at}"').replace("EXPECT", expect) for at, (expect, _) in enumerate(EXPECTED)]
    found = rollouts_of(osmosis, folder, HEAD + "".join(tests))
    assert [test["message"] for test in found] == [said for _, said in EXPECTED]
    assert [test["passed"] for test in found] == [not said for _, said in EXPECTED]
    assert [test["name"] for test in found] == [str(at) for at in range(len(EXPECTED))]
    assert found[0]["place"] == "workflow.toml:17:1" and all(test["seconds"] > 0 for test in found)


def test_rows_prompts_failures_and_limits(osmosis: Run, folder: Path) -> None:
    toml = (
        HEAD
        + """
        [[tests]]
        row = 1
        rules = [{ reply = "#### {{ row.a }}" }]
        expect = { reward = 1.0 }
        [[tests]]
        row = 7
        rules = [{ reply = "1" }]
        expect = { reward = 1.0 }
        [[tests]]
        messages = [{ role = "user", content = "Say 9" }]
        label = "9"
        attempt = 2
        rules = [{ when = "attempt == 2 and messages[0].role == 'system'", reply = "#### {{ last[4:] }}" }]
        expect = { reward = 1.0 }
        [[tests]]
        row = { q = "" }
        rules = [{ reply = "1" }]
        expect = { contains = "1" }
        [[tests]]
        row = { q = "", a = "" }
        rules = [{ error = "down" }]
        expect = { reward = 0.0 }
        [[tests]]
        row = { q = "", a = "" }
        rules = [{ error = "down" }]
        expect = { stop_reason = "model_unavailable", tool_calls = [] }
        [[tests]]
        row = { q = "", a = "x" }
        rules = [{ tool_calls = [{ name = "ad", arguments = "{" }] }]
        expect = { stop_reason = "max_turns", tool_calls = ["ad", "ad", "ad"], reward = 0 }
    """
    )
    found = [test["message"] for test in rollouts_of(osmosis, folder, toml)]
    down = "(model/model_unavailable: down)"
    assert found[:3] == ["", "`rows.jsonl` has no row 7 among those that `[dataset]` selects", ""]
    assert found[3].startswith("test 4: the label cannot be made: ")
    assert found[4] == f"the rollout failed {down}; expected a reward of 0, found none {down}"
    assert found[5:] == ["", ""]


def test_a_file_that_is_only_served_is_tested_without_a_model_of_its_own(osmosis: Run, folder: Path) -> None:
    (folder / "workflow.toml").write_text(HEAD + ADDS.replace("EXPECT", "reward = 1"))
    done = osmosis("test")
    assert done.returncode == 1  # one of the tool's own tests
    assert "✗ tools.add       1 of 2 failed\n    workflow.toml:7:51 test 2: " in done.stdout
    assert "✓ tests           1 passed\n3 passed, 1 failed\n" in done.stdout


def test_the_junit_file_counts_places_and_says_why(osmosis: Run, folder: Path) -> None:
    (folder / "workflow.toml").write_text(HEAD + ADDS.replace("EXPECT", "reward = 0"))
    done = osmosis("test", "--junit", "out/junit.xml")
    assert done.returncode == 1
    root = ElementTree.parse(folder / "out/junit.xml").getroot()
    assert [(suite.get("name"), suite.get("tests"), suite.get("failures")) for suite in root] == [
        ("tools.add", "2", "1"),
        ("graders.answer", "1", "0"),
        ("tests", "1", "1"),
    ]
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("4", "2", "0")
    case = root[2][0]
    assert (case.get("classname"), case.get("name")) == ("tests", "adds")
    failure = case[0]
    assert failure.get("message") == "expected a reward of 0, found 1 (answer 1, '5' is '5')"
    assert failure.text == f"workflow.toml:17:1: {failure.get('message')}"
    assert float(case.get("time") or -1) >= 0
    _is_of_the_common_schema(root)


def test_a_junit_file_that_cannot_be_written_is_an_error_of_the_command(osmosis: Run, folder: Path) -> None:
    (folder / "workflow.toml").write_text(HEAD)
    (folder / "file").write_text("")
    done = osmosis("test", "--junit", "file/junit.xml")
    assert done.returncode == 1
    assert "the JUnit file `file/junit.xml` cannot be written" in done.stderr


def test_whatever_a_tool_says_is_well_formed() -> None:
    nasty = 'a < b & "c" ]]> \x00\x1b[2J \ud800 é 😀\nline\ttab'
    text = junit_xml(nasty, [Suite(nasty, [Case(nasty, -1.0, nasty, "a b.toml:1:2"), Case("ok", 1234.5)])])
    assert text.isascii()
    root = ElementTree.fromstring(text)
    clean = nasty.translate(dict.fromkeys([0, 0x1B, 0xD800], "\ufffd"))
    assert root.get("name") == clean and root[0][0][0].get("message") == clean
    assert root[0].get("file") == "a b.toml" and root[0][1].get("time") == "1234.500"
    _is_of_the_common_schema(root)


COMMON = {
    "testsuites": {"name", "time", "tests", "failures", "errors"},
    "testsuite": {"name", "tests", "failures", "errors", "time", "skipped", "file"},
    "testcase": {"name", "time", "classname"},
    "failure": {"type", "message"},
}
"""The attributes that the common schema (xunit's junit-10) knows, of those we write."""


def _is_of_the_common_schema(root: ElementTree.Element) -> None:
    for element in root.iter():
        assert set(element.attrib) <= COMMON[element.tag]
    assert all(
        suite.tag == "testsuite" and {"name", "tests", "failures", "errors"} <= set(suite.attrib) for suite in root
    )


PLAIN = """
[workflow]
user = "{{ row.q }}"
[dataset]
path = "rows.jsonl"
[tools.calculator]
builtin = "calculator"
tests = [{ args = { expression = "2 ** 10" }, expect = { contains = "1024" } }]
[graders.answer]
kind = "exact"
tests = [{ output = "5", label = "5", expect = 1.0 }]
"""


def test_the_data_are_needed_only_where_a_test_reads_a_row(osmosis: Run, tmp_path: Path) -> None:
    file = tmp_path / "workflow.toml"
    file.write_text(PLAIN)
    done = osmosis("test")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "2 passed"), done.stderr
    (tmp_path / "rows.jsonl").touch()  # nor is one that nobody reads looked into
    assert osmosis("test").returncode == 0
    (tmp_path / "rows.jsonl").unlink()
    file.write_text(PLAIN + "[[tests]]\nrow = 0\nrules = [{ reply = '5' }]\nexpect = { reward = 1.0 }\n")
    done = osmosis("test")
    assert (done.returncode, "dataset-missing" in done.stderr) == (1, True)


def test_tools_are_tested_in_their_sandbox(osmosis: Run, tmp_path: Path) -> None:
    (tmp_path / "workflow.toml").write_text("""
        [workflow]
        user = "x"
        [sandboxes.work]
        kind = "none"
        copy = { "{{ row.folder }}" = "." }
        [tools.bash]
        builtin = "bash"
        tests = [
          { row = { folder = "one" }, args = { command = "rm a.txt && ls | wc -l" }, expect = { contains = "0" } },
          { row = { folder = "one" }, args = { command = "cat a.txt" }, expect = { contains = "first" } },
        ]
        [tools.editor]
        builtin = "file_editor"
        tests = [{ row = { folder = "one" }, args = { command = "view", path = "b" }, expect = { error = "b" } }]
    """)
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "a.txt").write_text("first\n")
    done = osmosis("test")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "3 passed"), done.stdout + done.stderr


def test_a_sandbox_that_no_test_needs_need_not_be_there(osmosis: Run, tmp_path: Path) -> None:
    more = '[sandboxes.work]\nkind = "podman"\nimage = "x"\n[tools.bash]\nbuiltin = "bash"\n'
    (tmp_path / "workflow.toml").write_text(PLAIN + more)
    assert osmosis("test", PATH="/nowhere").returncode == 0
    (tmp_path / "workflow.toml").write_text(PLAIN + more + 'tests = [{ args = { command = "" }, expect = "" }]\n')
    done = osmosis("test", PATH="/nowhere")
    assert (done.returncode, "`podman` is not installed" in done.stderr) == (3, True), done.stderr


def test_tools_of_an_mcp_server_are_tested_by_its_table(osmosis: Run, tmp_path: Path) -> None:
    server = ROOT / "tests" / "tools" / "mcp" / "servers" / "official.py"
    tests = """tests = [
        { tool = "add", args = { a = 1, b = 2 }, expect = 3 },
        { tool = "add", args = { a = 1 }, expect = { error = "`b`" } },
        { tool = "ad", expect = 3 },
    ]"""
    command = json.dumps([sys.executable, str(server)])
    (tmp_path / "workflow.toml").write_text(f"{PLAIN}[mcp.calc]\ncommand = {command}\n{tests}\n")
    done = osmosis("test", "--json")
    found = [test for test in json.loads(done.stdout)["tests"] if test["part"] == "mcp.calc"]
    assert [test["passed"] for test in found] == [True, True, False], found
    assert found[2]["message"] == "the file takes no tool `ad` of the MCP server"
    (tmp_path / "workflow.toml").write_text(PLAIN + '[mcp.calc]\ncommand = ["nobody"]\n')
    assert osmosis("test").returncode == 0  # a server that no test asks is not connected
