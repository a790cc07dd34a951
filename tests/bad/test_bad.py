"""Every broken file of this folder gets exactly the words beside it, in every format, and nothing but facts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.diag.codes import CODES

HERE = Path(__file__).resolve().parent
NAMES = sorted(file.stem for file in HERE.glob("*.toml"))
COMMAND = str(Path(sys.executable).parent / "osmosis-run")
HEAD = re.compile(r"^(?P<address>.*?) ?(?:error|warning)\[(?P<code>[a-z-]+)\] (?P<message>.*)$", re.MULTILINE)
AS_USERS_DO = [
    "import-raises",
    "set-mistake",
    "environment-mistake",
    "profile-conflict",
    "workflow-config",
    "column-missing",
]

Batch = Callable[[str], dict[str, tuple[int, str]]]


@pytest.fixture(scope="module")
def batch() -> Batch:
    """The exit code and output of every case in a format. One fresh interpreter a format, so that nothing leaks in."""
    known: dict[str, dict[str, tuple[int, str]]] = {}

    def run(form: str) -> dict[str, tuple[int, str]]:
        if form not in known:
            command = [sys.executable, str(HERE / "accept.py"), "--json", form]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
            known[form] = {name: (code, said) for name, (code, said) in json.loads(done.stdout).items()}
        return known[form]

    return run


def expected(name: str) -> str:
    return (HERE / f"{name}.txt").read_text(encoding="utf-8")


def heads(text: str) -> list[tuple[str, str]]:
    """The code and message of each finding of a text, in order."""
    return [(found["code"], found["message"]) for found in HEAD.finditer(text)]


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_text(name: str, batch: Batch) -> None:
    assert batch("text")[name][1] == expected(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_exit_code(name: str, batch: Batch) -> None:
    assert batch("text")[name][0] == (1 if " error[" in expected(name) or "\nerror[" in expected(name) else 0)


def test_the_corpus_is_complete() -> None:
    assert len(NAMES) >= 120
    assert {file.stem for file in HERE.glob("*.txt")} == set(NAMES)
    owners = {file.stem for suffix in ("args", "env") for file in HERE.glob(f"*.{suffix}")}
    assert owners <= set(NAMES)


def test_every_code_is_earned_and_explained() -> None:
    earned = {code for name in NAMES for code, _ in heads(expected(name))}
    assert earned == set(CODES)


@pytest.mark.parametrize("name", NAMES)
def test_a_text_is_for_people_on_any_machine(name: str) -> None:
    text = expected(name)
    assert not re.search(r"(?<![\w.:/#])/(?!/)[\w.-]+/", text), "an absolute path"
    for word in ("Traceback", "pydantic", "jinja", "Input should", "NoneType", "<class", "sk-proj", "eyJ", "tok-9c1b"):
        assert word.lower() not in text.lower()
    for line in text.splitlines():
        assert line == line.rstrip()


@pytest.mark.parametrize("name", NAMES)
def test_every_finding_has_a_place_and_a_cure(name: str, batch: Batch) -> None:
    for line in batch("json")[name][1].splitlines():
        found = json.loads(line)
        assert found["file"] is not None
        assert found["line"] >= 1
        assert (found["line"], found["column"]) <= (found["end_line"], found["end_column"])
        cure = found["label"] or found["helps"] or found["notes"]
        assert cure or found["message"].count("`") >= 4, f"{found['message']}: what to do about it?"


@pytest.mark.parametrize("name", NAMES)
def test_json_says_the_same(name: str, batch: Batch) -> None:
    said = [json.loads(line) for line in batch("json")[name][1].splitlines()]
    assert [(one["code"], one["message"]) for one in said] == heads(expected(name))
    for one, found in zip(said, HEAD.finditer(expected(name)), strict=True):
        if ".toml" in one["file"] or ".md" in one["file"]:
            assert found["address"] == f"{one['file']}:{one['line']}:{one['column']}"


@pytest.mark.parametrize("name", NAMES)
def test_github_says_the_same(name: str, batch: Batch) -> None:
    said = [_unescaped(line) for line in batch("github")[name][1].splitlines()]
    assert len(said) == len(heads(expected(name)))
    for line, (code, message) in zip(said, heads(expected(name)), strict=True):
        assert f"title={code}::" in line
        assert message in line


def _unescaped(line: str) -> str:
    for escape, character in (("%0A", "\n"), ("%0D", "\r"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        line = line.replace(escape, character)
    return line


@pytest.mark.parametrize("name", NAMES)
def test_sarif_says_the_same(name: str, batch: Batch) -> None:
    results: list[dict[str, Any]] = json.loads(batch("sarif")[name][1])["runs"][0]["results"]
    assert [one["ruleId"] for one in results] == [code for code, _ in heads(expected(name))]
    for one, (_, message) in zip(results, heads(expected(name)), strict=True):
        assert message in one["message"]["text"]


@pytest.mark.parametrize("name", AS_USERS_DO)
def test_a_process_of_its_own_says_the_same(name: str) -> None:
    ours = ("OSMOSIS_RUN", "NO_COLOR", "FORCE_COLOR")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    said = HERE / f"{name}.env"
    environment |= dict(line.split("=", 1) for line in said.read_text().splitlines()) if said.exists() else {}
    extra = HERE / f"{name}.args"
    words = extra.read_text().split() if extra.exists() else []
    done = subprocess.run(
        [COMMAND, "validate", f"{name}.toml", *[word.replace('"', "") for word in words]],
        capture_output=True, text=True, timeout=60, cwd=HERE, env=environment, check=False,
    )  # fmt: skip
    assert done.stdout == expected(name)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr


def test_a_repair_mends_and_breaks_nothing(tmp_path: Path, batch: Batch) -> None:
    """`--fix` in a copy: every finding that offered a repair is gone, and no new code has come."""
    shutil.copytree(HERE, tmp_path / "bad", ignore=shutil.ignore_patterns("__pycache__", "*.py[co]"))
    plain = [name for name in NAMES if not (HERE / f"{name}.args").exists() and not (HERE / f"{name}.env").exists()]
    for form in (["--fix"], ["--format", "json"]):
        command = [COMMAND, "validate", *[f"{name}.toml" for name in plain], *form]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path / "bad", check=False)
        assert "Traceback" not in done.stderr
    after = [json.loads(line) for line in done.stdout.splitlines()]
    assert not [one for one in after if one["fix"]]
    before = [json.loads(line) for name in plain for line in batch("json")[name][1].splitlines()]
    repaired = Counter(one["code"] for one in before if one["fix"])
    left = Counter(one["code"] for one in after)
    assert len(repaired) >= 8
    assert left["wrong-type"] < Counter(one["code"] for one in before)["wrong-type"]
