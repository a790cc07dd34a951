"""Export: what the SDK reads, what it would not find, and that what both can say survives the way there and back."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.config.load import inspect_file
from runner.diag.diagnostic import Report
from runner.osmosis_files.from_osmosis import import_file
from runner.osmosis_files.imported import seconds_text
from runner.osmosis_files.keys import KINDS
from runner.osmosis_files.page import value_text
from runner.osmosis_files.reading import read_file
from runner.osmosis_files.to_osmosis import export_file

Run = Callable[..., "subprocess.CompletedProcess[str]"]

WORKFLOW = """\
[workflow]
name = "multiply"
agent = "./rollouts/multiply/main.py:MathAgentWorkflow"
[graders.grader]
kind = "python"
call = "./rollouts/multiply/main.py:MathGrader"
"""


@pytest.fixture
def flow(workspace: Path) -> Path:
    """A workflow that names the code of the workspace."""
    file = workspace / "workflow.toml"
    file.write_text(WORKFLOW + '[model]\nid = "openai/gpt-5-mini"\n[dataset]\npath = "data/plain.csv"\n')
    return file


@pytest.mark.parametrize("kind", list(KINDS))
def test_what_is_written_is_what_the_sdk_reads(kind: str, osmosis: Run, flow: Path) -> None:
    done = osmosis("export-osmosis", "--kind", kind, "-o", "out/theirs.toml")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    report = Report()
    file = read_file(flow.parent / "out" / "theirs.toml", report, None if kind != "training" else kind)
    assert not report.findings
    assert file is not None and file.kind.name == kind
    back = osmosis("import", "out/theirs.toml", "-o", "back.toml", "--dataset", "data/plain.csv")
    assert back.returncode == 0, back.stderr
    assert osmosis("validate", "back.toml", OPENAI_API_KEY="k").returncode == 0
    assert osmosis("export-osmosis", "--kind", kind, "-o", "out/theirs.toml").returncode == 1


def test_what_they_cannot_say_is_told_with_its_place(osmosis: Run, flow: Path) -> None:
    flow.write_text(
        flow.read_text()
        + 'rows = "1,3"\n[tools.look]\ncall = "x:y"\n[limits]\ntool_calls = 3\n[graders.also]\nkind = "exact"\n'
        + '[env]\nlower = "1"\n[secrets]\nrequired = ["OK_NAME", "bad_name"]\n'
    )
    done = osmosis("export-osmosis", "--kind", "eval", OK_NAME="1", bad_name="1")
    assert done.returncode == 0, done.stderr
    assert tomllib.loads(done.stdout)["secrets"] == {"required": ["OK_NAME"]}
    for said in (
        "workflow.toml:11:1: note: `[dataset]` `rows`: no counterpart",
        "note: `[tools]` `look`: no counterpart",
        "note: `[limits]` `tool_calls`: no counterpart",
        "note: `graders.also`: a `exact` grader is ours",
        "note: `env.lower`: the SDK takes names of capitals",
        "note: `secrets.required`: `bad_name` cannot be secrets there",
    ):
        assert said in done.stderr


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        (
            'agent = "./rollouts/multiply/main.py:MathAgentWorkflow"\n',
            'agent = "chat"\n',
            'the agent "chat" is declared',
        ),
        ("main.py:MathAgentWorkflow", "scoring.py:MathGrader", "holds no `AgentWorkflow`"),
        ("multiply/main.py:MathAgentWorkflow", "several/main.py:First", "holds 2 `AgentWorkflow` classes"),
        ('id = "openai/gpt-5-mini"', 'provider = "scripted"\nrules = [{ reply = "1" }]', "the model is `scripted`"),
        ('[model]\nid = "openai/gpt-5-mini"\n', "", "this workflow has no `[model] id`"),
        ('path = "data/plain.csv"', "limit = 1", "no `[dataset] path`"),
    ],
)
def test_what_the_sdk_could_not_run_is_refused(old: str, new: str, found: str, osmosis: Run, flow: Path) -> None:
    assert old in flow.read_text()
    flow.write_text(flow.read_text().replace(old, new))
    done = osmosis("export-osmosis", "--kind", "eval")
    assert done.returncode == 1
    assert found in done.stderr
    assert done.stdout == ""


def test_code_outside_of_a_workspace_is_told_where_to_go(osmosis: Run, flow: Path) -> None:
    folder = flow.parent / "rollouts" / "multiply"
    for file in folder.glob("*.py"):
        file.rename(flow.parent / file.name)
    flow.write_text(flow.read_text().replace("rollouts/multiply/", ""))
    done = osmosis("export-osmosis", "--kind", "serve")
    assert tomllib.loads(done.stdout)["serve"] == {"rollout": "multiply", "entrypoint": "main.py"}
    assert "the SDK looks for `rollouts/multiply/main.py` under its workspace" in done.stderr


_SECONDS = st.one_of(st.integers(1, 86_400), st.floats(1.0, 86_400.0).map(lambda value: round(value, 3)))
_NAMES = st.from_regex(r"[A-Z][A-Z0-9_]{0,8}", fullmatch=True).map(lambda name: f"ROUND_{name}")
_TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
_VALUE = _TEXT.filter(lambda text: "\0" not in text)


@st.composite
def workflows(draw: st.DrawFn) -> dict[str, dict[str, Any]]:
    """Tables that every file of the SDK for models and rows can say, each key there or not."""
    names = draw(st.lists(_NAMES, unique=True, max_size=4))
    split = draw(st.integers(0, len(names)))
    tables: dict[str, dict[str, Any]] = {
        "model": {"id": draw(st.sampled_from(["openai/gpt-5-mini", "anthropic/claude-x", "Qwen/Qwen3-4B"]))},
        "dataset": {"path": "data/plain.csv"},
        "limits": {"time": seconds_text(draw(_SECONDS)), "grader_time": seconds_text(draw(_SECONDS))},
        "eval": {
            "attempts": draw(st.integers(1, 1024)),
            "concurrency": draw(st.integers(1, 10_000)),
            "pass_threshold": draw(st.floats(0, 1)),
        },
        "sampling": {"temperature": draw(st.floats(0, 2)), "top_p": draw(st.floats(0.01, 1))},
        "env": {name: draw(_VALUE) for name in names[:split]},
        "secrets": {"required": names[split:]},
    }
    if draw(st.booleans()):
        tables["dataset"]["limit"] = draw(st.integers(1, 100))
    return tables


def toml(tables: dict[str, dict[str, Any]]) -> str:
    return "".join(
        f"[{name}]\n" + "".join(f"{key} = {value_text(value)}\n" for key, value in table.items())
        for name, table in tables.items()
    )


SHARED = {
    "eval": ("workflow", "model", "limits.time", "limits.grader_time", "eval", "env", "secrets", "dataset"),
    "training": (
        "workflow",
        "model",
        "limits.time",
        "limits.grader_time",
        "eval.attempts",
        "env",
        "secrets",
        "sampling",
    ),
    "eval-0.2": ("workflow", "model", "limits.time", "limits.grader_time", "eval"),
}
"""What a kind of file can say, in our words."""


@pytest.mark.parametrize("kind", list(SHARED))
@given(tables=workflows())
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_there_and_back_keeps_what_both_can_say(kind: str, tables: dict[str, dict[str, Any]], workspace: Path) -> None:
    first, theirs, second = (workspace / name for name in ("workflow.toml", "theirs.toml", "back.toml"))
    first.write_text(WORKFLOW + toml(tables), encoding="utf-8")
    before = inspect_file(first, environ={})
    assert before.config is not None and not before.report.errors, list(before.report)
    theirs.write_text(export_file(before.config, kind, {}).text, encoding="utf-8")
    text = import_file(theirs, workspace, environ={}).text
    second.write_text(text, encoding="utf-8")
    after = inspect_file(second, environ={})
    assert after.config is not None and not after.report.errors, list(after.report)
    for path in SHARED[kind]:
        one, other = (_at(loaded.config, path, kind) for loaded in (before, after))
        assert one == other, path


def _at(config: Any, path: str, kind: str) -> Any:
    value = config
    for part in path.split("."):
        value = getattr(value, part)
    if path == "workflow":
        return value.name, value.agent.file, value.agent.name
    if path == "model":
        return value.id  # a key that the SDK takes for granted is written out on the way back
    if path == "dataset":
        return value.limit
    return (value.attempts, value.concurrency, value.pass_threshold) if path == "eval" else value


@given(value=st.recursive(
    st.one_of(_TEXT, st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_TEXT, inner, max_size=3)), max_leaves=8,
))  # fmt: skip
def test_values_are_written_as_toml_reads_them(value: Any) -> None:
    assert tomllib.loads(f"value = {value_text(value)}")["value"] == value
