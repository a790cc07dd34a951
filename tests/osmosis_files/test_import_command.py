"""`osmosis-run import` as a user runs it: what comes out validates and runs, and nothing is lost unsaid."""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runner.diag.diagnostic import ConfigError
from runner.diag.render import render
from runner.osmosis_files.from_osmosis import import_file

Run = Callable[..., "subprocess.CompletedProcess[str]"]

KEYS = {"MATH_KEY": "k", "OPENAI_API_KEY": "k"}
SCRIPT = ("--set", "model.provider=scripted", "--set", 'model.rules=[{reply="42"}]')
AGENT = "rollouts/multiply/main.py:MathAgentWorkflow"


def imported(osmosis: Run, workspace: Path, file: str, *words: str) -> tuple[dict[str, Any], str]:
    """The data of the file written, and what was said on stderr; it validates."""
    done = osmosis("import", file, "-o", "workflow.toml", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    checked = osmosis("validate", **KEYS)
    assert (checked.returncode, checked.stdout) == (0, ""), checked.stdout
    return tomllib.loads((workspace / "workflow.toml").read_text()), done.stderr


def test_a_local_eval_file(osmosis: Run, workspace: Path) -> None:
    data, said = imported(osmosis, workspace, "configs/eval/local.toml")
    assert data["workflow"] == {
        "name": "multiply",
        "agent": f"./{AGENT}",
        "config": {"name": "math", "style": "long"},
    }
    assert data["model"] == {
        "id": "openai/gpt-5-mini",
        "base_url": "http://localhost:8001/v1",
        "api_key": {"env": "MATH_KEY"},
    }
    assert data["graders"] == {"grader": {"kind": "python", "call": "./rollouts/multiply/main.py:MathGrader"}}
    assert data["dataset"] == {
        "path": "data/cased.jsonl",
        "rows": "1-2",
        "columns": {"system_prompt": "System_Prompt", "user_prompt": "User_Prompt", "ground_truth": "GROUND_TRUTH"},
    }
    assert data["eval"] == {"attempts": 2, "concurrency": 4, "pass_threshold": 0.5, "output": "results"}
    assert data["limits"] == {"turns": 1000, "time": "451.5s", "grader_time": "20s"}
    assert data["profiles"]["baseline"] == {
        "model.id": "openai/gpt-5-nano",
        "model.base_url": "https://api.openai.com/v1",
        "model.api_key": {"env": "OPENAI_API_KEY"},
    }
    assert "tok-123" not in (workspace / "workflow.toml").read_text() + said
    assert "note: `workflow_config.service_token` looks like a secret and stays out" in said
    assert "configs/eval/local.toml:8:1: note: `[eval] fresh`: a matter of the command line" in said
    for key in ("[eval] retry_failed", "[output] log_samples", "[output] quiet", "[output] debug"):
        assert f"note: `{key}`: " in said
        assert f"# {key} = " in (workspace / "workflow.toml").read_text()
    assert osmosis("validate", "--profile", "baseline", **KEYS).returncode == 0


def test_what_was_imported_runs(osmosis: Run, workspace: Path) -> None:
    imported(osmosis, workspace, "configs/eval/local.toml")
    done = osmosis("eval", *SCRIPT, "--json", **KEYS)
    assert done.returncode == 0, done.stderr
    run = next(path for path in (workspace / "results").iterdir() if (path / "summary.json").exists())
    lines = (run / "rollouts.jsonl").read_text().splitlines()
    assert sum('"reward": 1.0' in line or '"reward":1.0' in line for line in lines) == 2
    assert sum('"reward": 0.0' in line or '"reward":0.0' in line for line in lines) == 2


def test_a_platform_eval_file(osmosis: Run, workspace: Path) -> None:
    data, said = imported(osmosis, workspace, "configs/eval/platform.toml")
    assert data["model"] == {"id": "openai/gpt-5-mini", "api_key": {"env": "OPENAI_API_KEY"}}
    assert data["eval"] == {"attempts": 3, "concurrency": 1, "pass_threshold": 0.0}
    assert data["limits"] == {"turns": 1000, "time": "10m", "grader_time": "2m30s"}
    assert (data["env"], data["secrets"]) == ({"MATH_MODE": "fast"}, {"required": ["OPENAI_API_KEY"]})
    assert "dataset" not in data
    for key in ("experiment] dataset", "experiment] branch", "evaluation] limit", "advanced] gpu"):
        assert f"note: `[{key}`: " in said


def test_a_dataset_of_the_platform_is_given_by_hand(osmosis: Run, workspace: Path) -> None:
    data, _ = imported(osmosis, workspace, "configs/eval/platform.toml", "--dataset", "data/labelled.jsonl")
    assert data["dataset"] == {"path": "data/labelled.jsonl", "columns": {"ground_truth": "label"}}
    assert osmosis("eval", *SCRIPT, "--attempts", "1", **KEYS).returncode == 0


def test_plain_columns_need_no_mapping(osmosis: Run, workspace: Path) -> None:
    data, _ = imported(osmosis, workspace, "configs/eval/platform.toml", "--dataset", "data/plain.csv")
    assert data["dataset"] == {"path": "data/plain.csv"}
    assert osmosis("eval", *SCRIPT, "--attempts", "1", **KEYS).returncode == 0


def test_a_training_file(osmosis: Run, workspace: Path) -> None:
    data, said = imported(osmosis, workspace, "configs/training/small.toml")
    assert data["model"] == {"id": "Qwen/Qwen3-4B"}
    assert data["sampling"] == {"temperature": 1.0, "top_p": 0.9}
    assert data["limits"] == {"turns": 1000, "time": "15m", "grader_time": "2m30s"}
    assert data["eval"] == {"attempts": 8}
    keys = ("lr", "total_epochs", "rollout_batch_size", "max_prompt_length", "max_response_length")
    for key in ("[experiment] commit_sha", *(f"[training] {key}" for key in keys), "[checkpoints] eval_interval"):
        assert f"note: `{key}`: " in said


def test_a_serve_file_keeps_its_key_out_of_the_file(osmosis: Run, workspace: Path) -> None:
    done = osmosis("import", "configs/serve/open.toml", "-o", "workflow.toml")
    text = (workspace / "workflow.toml").read_text()
    assert tomllib.loads(text)["serve"] == {
        "host": "0.0.0.0",  # noqa: S104
        "port": 9100,
        "api_key": {"env": "OSMOSIS_API_KEY"},
        "log": {"level": "debug"},
    }
    assert "very-secret" not in text + done.stderr
    assert "trace_dir" in done.stderr and "no_validate" in done.stderr
    assert osmosis("validate", OSMOSIS_API_KEY="k").returncode == 0
    assert "the environment variable `OSMOSIS_API_KEY` is not set" in osmosis("validate").stdout


def test_a_serve_file_without_a_key_says_so(osmosis: Run, workspace: Path) -> None:
    file = workspace / "configs" / "serve" / "open.toml"
    file.write_text(file.read_text().split("[registration]")[0].replace('"trace"', '"warning"'))
    data, _ = imported(osmosis, workspace, "configs/serve/open.toml")
    assert data["serve"]["allow_anonymous"] is True
    assert data["serve"]["log"] == {"level": "warning"}


def test_stdout_is_for_this_folder_and_o_for_its_own(osmosis: Run, workspace: Path) -> None:
    here = osmosis("import", "configs/eval/local.toml")
    assert tomllib.loads(here.stdout)["workflow"]["agent"] == f"./{AGENT}"
    osmosis("import", "configs/eval/local.toml", "-o", "flows/math/workflow.toml")
    data = tomllib.loads((workspace / "flows" / "math" / "workflow.toml").read_text())
    assert data["workflow"]["agent"] == f"../../{AGENT}"
    assert data["dataset"]["path"] == "../../data/cased.jsonl"
    assert data["eval"]["output"] == "../../results"
    assert osmosis("validate", "flows/math", **KEYS).returncode == 0
    again = osmosis("import", "configs/eval/local.toml", "-o", "flows/math/workflow.toml")
    assert again.returncode == 1
    assert "is there already" in again.stderr
    assert osmosis("import", "configs/eval/local.toml", "-o", "flows/math/workflow.toml", "--force").returncode == 0


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ('rollout = "multiply"', 'rollout = "multiple"', ":3:11 error[not-found]"),
        ('entrypoint = "main.py"', 'entrypoint = "../main.py"', ":4:14 error[bad-value]"),
        ('entrypoint = "main.py"', 'entrypoint = "mian.py"', "did you mean `main.py`?"),
        ('rollout = "multiply"', 'rollout = "several"', "holds 2 `AgentWorkflow` classes: `First` ("),
        ('"data/cased.jsonl"', '"data/case.jsonl"', ":5:11 error[dataset-missing]"),
        ("offset = 1", "offset = 3", "`eval.offset` 3 leaves no row: the dataset has 3"),
        ('dataset = "data/cased.jsonl"', 'dataset = "data/labelled.jsonl"', "no column `system_prompt`"),
        ("retry_failed = false", "retry_failed = true", "`fresh` and `retry_failed` exclude each other"),
        ("n = 2", "n = 2.0", ":17:5 error[wrong-type]"),
        ("pass_threshold = 0.5", "pass_threshold = 1.5", "at least 0 and at most 1"),
        ("grader_timeout_s = 20", "grader_timeout_s = 0", "more than 0"),
        ("log_samples = true", "log_sample = true", "did you mean `log_samples`?"),
        ("[runs]", "[run]", "did you mean `[runs]`?"),
        ("[eval]", "[[eval]]", "`eval` must be a table"),
        ('model = "openai/gpt-5-mini"', "", "`[llm]` needs `model`"),
        ("quiet = true", "n = 3", "it belongs into `[runs]`"),
        ("n = 2", "n = ", "error[syntax]"),
        ("[eval]", "[experiment]\n[eval]", "`[experiment]`"),
    ],
)
def test_mistakes_are_findings_with_their_places(old: str, new: str, found: str, workspace: Path) -> None:
    file = workspace / "configs" / "eval" / "local.toml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        import_file(file, workspace)
    said = render(caught.value.report, color=False)
    assert found in said
    assert "configs/eval/local.toml:" in said


def test_one_of_several_classes_is_chosen_by_name(osmosis: Run, workspace: Path) -> None:
    file = workspace / "configs" / "eval" / "local.toml"
    file.write_text(file.read_text().replace('"multiply"', '"several"'))
    data, said = imported(osmosis, workspace, "configs/eval/local.toml", "--workflow", "Second")
    assert data["workflow"]["agent"] == "./rollouts/several/main.py:Second"
    assert "holds no `Grader`" in said


def test_a_file_that_does_not_tell_what_it_is(osmosis: Run, workspace: Path) -> None:
    file = workspace / "bare.toml"
    text = (workspace / "configs" / "training" / "small.toml").read_text().split("[training]")[0]
    file.write_text(text + "[secrets]\nrequired = []\n")
    done = osmosis("import", "bare.toml")
    assert done.returncode == 1
    assert "say which it is: `--kind eval` or `--kind training`" in done.stderr
    assert tomllib.loads(osmosis("import", "bare.toml", "--kind", "eval").stdout)["eval"]["attempts"] == 1
    assert "eval" not in tomllib.loads(osmosis("import", "bare.toml", "--kind", "training").stdout)
    file.write_text(text + "[evaluation]\n[training]\n[secrets]\nrequired = []\n")
    assert "the file mixes kinds" in osmosis("import", "bare.toml").stderr
    file.write_text("[other]\n")
    assert "eval-0.2: an evaluation of SDK 0.2" in osmosis("import", "bare.toml").stderr
    file.write_text("")
    assert "is none of the SDK's files" in osmosis("import", "bare.toml").stderr
    file.write_text("[workflow]\n")
    assert "check it with `osmosis-run validate`" in osmosis("import", "bare.toml").stderr


def test_every_mistake_at_once(osmosis: Run, workspace: Path) -> None:
    file = workspace / "configs" / "eval" / "platform.toml"
    text = file.read_text().replace('branch = "main"', 'branch = "main"\ncommit_sha = "xyz"').replace("n = 3", "n = 0")
    text = text.replace('MATH_MODE = "fast"', 'lower = 1\n_OSMOSIS_X = "a"')
    file.write_text(text.replace('["OPENAI_API_KEY"]', '["A", "A", "b", "_OSMOSIS_X"]'))
    done = osmosis("import", "configs/eval/platform.toml", "-o", "workflow.toml")
    said = done.stderr
    assert done.returncode == 1
    assert "Traceback" not in said
    assert not (workspace / "workflow.toml").exists()
    for found in (
        "error[bad-value] `experiment.commit_sha` must be a commit of 7 to 40 hexadecimal digits",
        "error[one-of] `branch` and `commit_sha` exclude each other",
        "error[out-of-range] `evaluation.n` must be at least 1, found 0",
        "error[bad-value] `lower` is no name of a variable",
        "error[wrong-type] `env.lower` must be a string",
        "error[reserved-name] `_OSMOSIS_X` belongs to the platform",
        "error[duplicate-name] the secret `A` is named twice",
        "error[bad-value] `b` is no name of a secret",
    ):
        assert found in said


@pytest.mark.parametrize(
    ("llm", "model"),
    [
        ('model = "gpt-5-mini"', {"id": "gpt-5-mini", "provider": "litellm"}),
        ('model = "anthropic/claude-x"', {"id": "anthropic/claude-x"}),
        (
            'model = "anthropic/claude-x"\nbase_url = "https://proxy.example/x"',
            {"id": "anthropic/claude-x", "base_url": "https://proxy.example/x", "provider": "litellm"},
        ),
        ('model = "q"\nbase_url = "http://h/v1"', {"id": "q", "base_url": "http://h/v1"}),
    ],
)
def test_who_litellm_would_ask_is_who_is_asked(llm: str, model: dict[str, Any], osmosis: Run, workspace: Path) -> None:
    file = workspace / "configs" / "eval" / "local.toml"
    head, tail = file.read_text().split("[llm]")
    file.write_text(f"{head}[llm]\n{llm}\n\n[runs]{tail.split('[runs]')[1]}")
    data, _ = imported(osmosis, workspace, "configs/eval/local.toml")
    assert data["model"] == model


def test_a_baseline_never_gets_the_key_of_the_policy(osmosis: Run, workspace: Path) -> None:
    file = workspace / "configs" / "eval" / "local.toml"
    file.write_text(file.read_text().replace("openai/gpt-5-nano", "groq/llama"))
    data, said = imported(osmosis, workspace, "configs/eval/local.toml")
    assert "profiles" not in data
    assert "it sets no `base_url` and `api_key`, and a profile would keep the policy's" in said
    assert '# "model.id" = "groq/llama"' in (workspace / "workflow.toml").read_text()


def test_a_named_grader_and_its_config(osmosis: Run, workspace: Path) -> None:
    file = workspace / "configs" / "eval" / "local.toml"
    file.write_text(file.read_text() + '\n[grader]\nmodule = "scoring:MathGrader"\n')
    data, _ = imported(osmosis, workspace, "configs/eval/local.toml")
    assert data["graders"]["grader"]["call"] == "./rollouts/multiply/scoring.py:MathGrader"
