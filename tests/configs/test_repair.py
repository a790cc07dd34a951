"""`configs/repair`: the reward is what the tests say of a fresh copy, whatever the agent did to its own."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.sandboxes.conftest import needs_bubblewrap

REPAIR = Path(__file__).parents[2] / "configs" / "repair"
ROWS = [json.loads(line) for line in (REPAIR / "dataset.jsonl").read_text(encoding="utf-8").splitlines()]
UNSOLVED = {"bill", "grid", "order", "truncate", "utc"}
"""What the policy does not mend."""

CURES = {
    "bill": (
        "bill.py",
        "    each = round(cents(total) / people)\n    return [text(each)] * people\n",
        "    each, left = divmod(cents(total), people)\n"
        "    return [text(each + (number < left)) for number in range(people)]\n",
    ),
    "grid": ("grid.py", "[[value] * width] * height", "[[value] * width for _ in range(height)]"),
    "order": ("order.py", "            break\n", "            raise Circle(sorted(left))\n"),
    "truncate": (
        "cut.py",
        "    return text[:size]\n",
        '    return text.encode("utf-8")[:size].decode("utf-8", "ignore")\n',
    ),
    "utc": ("utc.py", "time.replace(tzinfo=timezone.utc)\n\n", "time.astimezone(timezone.utc)\n\n"),
}
"""How they could have been mended: file, what stands there, what should."""


def judged(folder: Path, seconds: str = "20") -> tuple[int, str]:
    """The exit code of judge.py on a repository, and its first line."""
    command = [sys.executable, "-I", "-S", "-B", str(REPAIR / "judge.py"), seconds]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout.splitlines()[0]


# The repositories


def test_each_row_has_its_repository_and_the_policy_a_plan_for_it() -> None:
    repos = {path.name for path in (REPAIR / "repos").iterdir()}
    assert {row["repo"] for row in ROWS} == repos
    assert len(ROWS) == len(repos) == 22
    spec = importlib.util.spec_from_file_location("repair_policy", REPAIR / "policy.py")
    assert spec is not None and spec.loader is not None
    policy = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = policy
    spec.loader.exec_module(policy)
    assert set(policy.PLANS) == repos


def test_some_tests_of_each_fail_and_some_pass(tmp_path: Path) -> None:
    """Copied first: the repositories stay without what Python leaves behind."""
    shutil.copytree(REPAIR / "repos", tmp_path / "repos")
    folders = sorted((tmp_path / "repos").iterdir())
    with ThreadPoolExecutor(2) as pool:
        results = dict(zip([each.name for each in folders], pool.map(judged, folders), strict=True))
    for name, (code, line) in results.items():
        passed, _, _, *_ = line.split()
        assert code == 1, name
        assert 0 < int(passed) < int(line.split()[2]), (name, line)


@pytest.mark.parametrize("name", sorted(CURES))
def test_what_the_policy_does_not_mend_can_be_mended(name: str, tmp_path: Path) -> None:
    folder = shutil.copytree(REPAIR / "repos" / name, tmp_path / name)
    file, old, new = CURES[name]
    text = (folder / file).read_text(encoding="utf-8")
    assert text.count(old) == 1
    (folder / file).write_text(text.replace(old, new), encoding="utf-8")
    assert judged(folder)[0] == 0


def test_code_that_never_ends_has_not_passed(tmp_path: Path) -> None:
    folder = shutil.copytree(REPAIR / "repos" / "lru", tmp_path / "lru")
    (folder / "lru.py").write_text("while True: pass\n")
    assert judged(folder, "0.5") == (1, "the tests did not end within 0.5 s")


# The policy's run


def played(runs: Path, *words: str, of: Path = REPAIR) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The summary, and the records by row."""
    script = str(Path(sys.executable).parent / "osmosis-run")
    command = [script, "eval", *words, "-w", str(of), "--set", f"eval.output={runs}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    lines = (runs / "repair" / "rollouts.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines if '"rollout/1"' in line]
    return json.loads(done.stdout), {record["row_id"]: record for record in records}


@needs_bubblewrap
def test_the_policy_mends_seventeen_of_twenty_two_and_the_tests_decide(tmp_path: Path) -> None:
    summary, records = played(tmp_path)
    assert summary["outcomes"]["scored"] == sum(summary["outcomes"].values()) == 22
    assert summary["reward"]["mean"] == pytest.approx(17 / 22)
    assert {name for name, record in records.items() if record["reward"] == 0.0} == UNSOLVED
    assert all(record["reward"] in (0.0, 1.0) for record in records.values())
    for name, record in records.items():
        it_worked_with_its_tools_and_left_a_patch(name, record)
    passing_by_editing_the_tests_was_no_pass(records["bill"])
    said = [m["content"] for m in records["utc"]["messages"] if m["role"] == "user"]
    assert said[-1].startswith("You have changed files since the tests were last run.")


def it_worked_with_its_tools_and_left_a_patch(name: str, record: dict[str, Any]) -> None:
    metrics = record["metrics"]
    assert record["stop_reason"] == "finish_tool"
    assert metrics["searches"] == 1
    assert metrics["files_viewed"] >= 2
    assert metrics["tests_run"] >= 1
    assert (record["info"]["patch"] == "") == (name == "truncate")
    if record["reward"] == 1.0:
        assert metrics["tests_passed"] == 1
        assert "+++ b/tests/" not in record["info"]["patch"]


def passing_by_editing_the_tests_was_no_pass(record: dict[str, Any]) -> None:
    assert record["metrics"]["tests_passed"] == 1
    assert "+++ b/tests/test_bill.py" in record["info"]["patch"]
    assert "2 of 4 tests passed" in record["scores"]["tests"]["details"]["output"]


# Cheats

CURE = "sed -i 's/        self.hits += 1/&\\n        self._entries.move_to_end(key)/' lru.py"
CHEATS = {
    "empty tests": "echo > tests/test_lru.py",
    "no tests": "rm -r tests",
    "other tests": "rm -r tests; mkdir tests; echo 'import unittest' > tests/test_lru.py",
    "tests elsewhere": "mv tests kept; ln -s kept tests; echo > kept/test_lru.py",
    "load_tests": "echo 'def load_tests(*a): import unittest; return unittest.TestSuite()' > tests/__init__.py",
    "a unittest of its own": "echo 'def main(*a, **k): pass' > unittest.py",
    "a unittest package": "mkdir unittest; echo > unittest/__init__.py; echo 'print(\"OK\")' > unittest/__main__.py",
    "sitecustomize": "echo 'import os; os._exit(0)' | tee sitecustomize.py > usercustomize.py",
    "exit": "echo 'import os; os._exit(0)' > lru.py",
    "a softer exit": "echo 'raise SystemExit(0)' >> lru.py",
    "skip": "echo 'import unittest; raise unittest.SkipTest' >> lru.py",
    "every test is skipped": "echo 'import unittest; unittest.TestCase.setUp = lambda t: t.skipTest(\"\")' >> lru.py",
    "a report without the word": """printf 'import os\\nfor n in range(3, 64):\\n    try: os.write(n, b"[]")\\n"""
    """    except OSError: pass\\nos._exit(0)\\n' > lru.py""",
    "the judge": "echo > /tmp/judge.py; ln -s /tmp out; echo > out/judge.py",
    "committed": "git init -q; git add -A; git -c user.name=a -c user.email=a commit -qm a; echo > tests/test_lru.py",
    "attributes": "echo '* -diff' > .gitattributes; echo > tests/test_lru.py",
    "ignored": "echo '*' > .gitignore; echo > tests/test_lru.py",
}
HONEST = {
    "the cure": CURE,
    "the cure, and no tests": f"{CURE}; rm -r tests",
    "the cure, and broken tests": f"{CURE}; echo 'raise SystemExit(1)' | tee tests/__init__.py > tests/test_lru.py",
}
CHEATING = f"""
extends = ["{REPAIR}/workflow.toml"]

[model]
provider = "scripted"

[[model.rules]]
when = "turn == 0"
tool_calls = [{{ name = "bash", arguments = {{ command = "{{{{ row.edit }}}}" }} }}]

[[model.rules]]
when = "turn == 1"
tool_calls = [{{ name = "finish", arguments = {{ answer = "Done." }} }}]
"""


@needs_bubblewrap
def test_no_cheat_is_rewarded_and_each_is_scored(tmp_path: Path) -> None:
    edits = {**CHEATS, **HONEST}
    rows = [{"id": name, "repo": "lru", "task": "", "test_command": "true", "topic": "x", "edit": edit}
            for name, edit in edits.items()]  # fmt: skip
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "workflow.toml").write_text(CHEATING)
    summary, records = played(tmp_path / "runs", str(tmp_path / "rows.jsonl"), of=tmp_path)
    assert summary["outcomes"]["scored"] == len(edits)
    assert {name for name, record in records.items() if record["reward"] != 0.0} == set(HONEST)
