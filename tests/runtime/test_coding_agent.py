"""The coding agent on a small repository: the real plan, engine, sandbox and tools, and a model that knows the way."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from runner.diag.diagnostic import ConfigError
from runner.records.artifacts import artifacts_at
from runner.records.failure import SandboxError

REPOSITORY = {"calc.py": "def add(a, b):\n    return a - b\n", "check.sh": "grep -q 'a + b' calc.py\n"}
TOML = """
[sandboxes.work]
kind = "none"
copy = { "repo" = "." }
[tools.bash]
builtin = "bash"
[tools.editor]
builtin = "file_editor"
[tools.look]
builtin = "search"
[tools.finish]
builtin = "finish"
[graders.answer]
kind = "exact"
expect = "Fixed."
"""
VIEW = ("editor", '{"command": "view", "path": "calc.py"}')
EDIT = ("editor", '{"command": "str_replace", "path": "./calc.py", "old_str": "a - b", "new_str": "a + b"}')
WRONG = ("editor", '{"command": "str_replace", "path": "calc.py", "old_str": "a - b", "new_str": "b - a"}')
TEST = ("bash", '{"command": "make test || sh check.sh"}')
DONE = ("finish", '{"answer": "Fixed."}')


@pytest.fixture
def repository(project: Any) -> Any:
    (project.folder / "repo").mkdir()
    for name, text in REPOSITORY.items():
        (project.folder / "repo" / name).write_text(text)
    return project


def coded(project: Any, *turns: Any, toml: str = TOML, workflow: str = "") -> Any:
    """The outcome, and the model that was asked."""
    says = [project.says(turn) if isinstance(turn, str) else project.says(None, turn) for turn in turns]
    model = project.Says(says)
    return project.play(toml, workflow=f'agent = "coding"\n{workflow}', model=model), model


def test_explore_edit_test_finish(repository: Any) -> None:
    outcome, model = coded(
        repository, VIEW, ("look", '{"command": "search_text", "pattern": "a - b"}'), EDIT, TEST, DONE
    )
    assert (outcome.status, outcome.reward, outcome.stop_reason) == ("scored", 1.0, "finish_tool")
    assert outcome.sample.info["patch"].startswith("diff --git a/calc.py b/calc.py\n")
    assert outcome.sample.info["patch"].endswith("-    return a - b\n+    return a + b\n")
    assert dict(outcome.sample.metrics) == {
        "turns": 5, "files_viewed": 1.0, "files_edited": 1.0, "searches": 1.0, "tests_run": 1.0, "tests_passed": 1.0,
        "patch_files": 1.0, "patch_bytes": float(len(outcome.sample.info["patch"])),
    }  # fmt: skip
    assert model.asked[0][0][0]["content"].startswith("You are a careful software engineer.")
    assert (repository.folder / "repo" / "calc.py").read_text() == REPOSITORY["calc.py"]


def test_edits_without_a_test_are_asked_for_once(repository: Any) -> None:
    config = 'config = { test_command = "sh check.sh" }'
    outcome, model = coded(repository, EDIT, DONE, "I will not.", "Fixed.", workflow=config)
    assert outcome.stop_reason == "final_answer"
    assert model.asked[2][0][-1]["content"] == (
        "You have changed files since the tests were last run. Run them (`sh check.sh`), then finish."
    )
    assert len(model.asked) == 3
    quiet, model = coded(repository, EDIT, DONE, workflow="config = { test_after_changes = false }")
    assert (quiet.stop_reason, len(model.asked)) == ("finish_tool", 2)
    tested, model = coded(repository, EDIT, ("bash", '{"command": "sh check.sh"}'), DONE, workflow=config)
    assert (tested.sample.metrics["tests_run"], len(model.asked)) == (1.0, 3)


def test_too_much_reading_and_too_many_attempts(repository: Any) -> None:
    views = [("editor", f'{{"command": "view", "path": "{name}"}}') for name in REPOSITORY]
    _, model = coded(repository, *views, DONE, workflow="config = { max_files_to_explore = 2 }")
    assert "You have viewed 2 files and changed none" in model.asked[2][0][-1]["content"]
    ended, _ = coded(repository, WRONG, TEST, TEST, VIEW, workflow="config = { max_implementation_attempts = 1 }")
    assert (ended.stop_reason, ended.sample.metrics["turns"], ended.reward) == ("max_attempts", 2, 0.0)
    assert "b - a" in ended.sample.info["patch"]


def test_the_patch_is_there_at_a_limit_too_and_among_the_artifacts(repository: Any, tmp_path: Path) -> None:
    mark = artifacts_at.set(tmp_path / "kept")
    try:
        outcome, _ = coded(repository, EDIT, toml=f"{TOML}[limits]\nturns = 2\n")
    finally:
        artifacts_at.reset(mark)
    assert outcome.stop_reason == "max_turns"
    assert "+    return a + b" in outcome.sample.info["patch"]
    assert (tmp_path / "kept" / "patch.diff").read_text() == outcome.sample.info["patch"]


def test_in_text_as_well(repository: Any) -> None:
    edit = (
        "<function=editor><parameter=command>str_replace</parameter><parameter=path>calc.py</parameter>"
        "<parameter=old_str>\n    return a - b\n</parameter><parameter=new_str>\n    return a + b\n</parameter>"
        "</function>"
    )
    test = "<function=bash><parameter=command>sh check.sh; make test</parameter></function>"
    done = "<function=finish><parameter=answer>Fixed.</parameter></function>"
    outcome, model = coded(repository, edit, test, done, workflow='parser = "xml-function"')
    assert (outcome.reward, outcome.stop_reason) == (1.0, "finish_tool")
    assert "+    return a + b" in outcome.sample.info["patch"]
    assert [names for _, names, _ in model.asked] == [[]] * 3


def test_the_sandbox_is_started_when_it_is_needed(repository: Any) -> None:
    toml = TOML.replace('kind = "none"', 'kind = "none"\nsetup = ["exit 3"]')
    outcome, _ = coded(repository, "Fixed.", toml=toml)
    assert (outcome.reward, outcome.sample.info["patch"]) == (1.0, "")
    lost, _ = coded(repository, VIEW, toml=toml)
    assert lost.failure is not None
    assert (lost.status, lost.failure.boundary) == ("failed", SandboxError.boundary)


def test_the_files_own_prompt_stands(repository: Any) -> None:
    _, model = coded(repository, "Fixed.", workflow='system = "Mine."')
    assert model.asked[0][0][0]["content"] == "Mine."


@pytest.mark.parametrize(
    ("config", "code", "where"),
    [
        ("{ sandbx = 'work' }", "unknown-key", "did you mean `sandbox`?"),
        ("{ sandbox = 'wrk' }", "unknown-sandbox", ""),
        ("{ max_files_to_explore = 0 }", "wrong-type", ""),
        ("{ test_after_changes = 'no' }", "wrong-type", ""),
    ],
)
def test_settings_that_do_not_fit_are_found(repository: Any, config: str, code: str, where: str) -> None:
    with pytest.raises(ConfigError) as raised:
        repository.build(TOML, workflow=f'agent = "coding"\nconfig = {config}')
    (found,) = raised.value.report
    assert found.code == code
    assert where in found.label


def test_two_rollouts_share_nothing(repository: Any) -> None:
    plan = repository.build(TOML, workflow='agent = "coding"\nconfig = { test_after_changes = false }')

    async def main() -> tuple[Any, Any]:
        async with plan.open(model=repository.Says([repository.says("Fixed.")])) as live:
            one = live.answered_by(repository.Says([repository.says(None, EDIT), repository.says(None, DONE)]))
            two = live.answered_by(repository.Says([repository.says(None, WRONG), repository.says(None, DONE)]))
            return await asyncio.gather(repository.rollout(one), repository.rollout(two, attempt=1))

    one, two = asyncio.run(main())
    assert "+    return a + b" in one.sample.info["patch"]
    assert "+    return b - a" in two.sample.info["patch"]
