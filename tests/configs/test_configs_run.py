"""Every config of `configs/` validates, passes its own tests, and runs."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sandboxes.conftest import needs_bubblewrap

Run = Callable[..., "subprocess.CompletedProcess[str]"]

CONFIGS = Path(__file__).parents[2] / "configs"
ALL = sorted(path.parent for path in CONFIGS.glob("*/workflow.toml"))


@pytest.mark.parametrize("folder", ALL, ids=lambda folder: folder.name)
def test_it_validates(folder: Path, osmosis: Run) -> None:
    if folder.name == "gsm8k" and not solver().DATA.exists():
        pytest.skip(f"no GSM8K data at {solver().DATA}")
    done = osmosis("validate", folder)
    assert (done.returncode, done.stdout) == (0, "")
    assert f"{folder / 'workflow.toml'}: ok (" in done.stderr


@pytest.mark.parametrize(
    "folder",
    [pytest.param(each, marks=needs_bubblewrap) if each.name == "repair" else each for each in ALL],
    ids=lambda folder: folder.name,
)
def test_its_own_tests_pass(folder: Path, osmosis: Run) -> None:
    if folder.name == "gsm8k" and not solver().DATA.exists():
        pytest.skip(f"no GSM8K data at {solver().DATA}")
    done = osmosis("test", folder, "--json")
    results = json.loads(done.stdout)["tests"]
    assert done.returncode == 0, done.stdout
    assert results
    assert all(result["passed"] for result in results)


@pytest.fixture(scope="module")
def arithmetic(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The summary and the records of one run."""
    runs = tmp_path_factory.mktemp("runs")
    script = str(Path(sys.executable).parent / "osmosis-run")
    command = [script, "eval", "-w", str(CONFIGS / "arithmetic"), "--set", f"eval.output={runs}", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    lines = (runs / "arithmetic" / "rollouts.jsonl").read_text(encoding="utf-8").splitlines()
    return json.loads(done.stdout), [json.loads(line) for line in lines if '"rollout/1"' in line]


def test_the_arithmetic_run_is_whole_and_worth_looking_at(arithmetic: Any) -> None:
    summary, _ = arithmetic
    assert (summary["rows"], summary["attempts"], summary["complete"]) == (120, 4, True)
    assert 0.6 < summary["pass_at"]["1"]["value"] < 0.85
    assert summary["pass_at"]["4"]["value"] > summary["pass_at"]["1"]["value"]
    assert set(summary["stop_reasons"]) == {"final_answer", "max_turns", "max_tokens", "model_unavailable"}
    assert 0 < summary["outcomes"]["failed"] < 24
    assert sum(summary["outcomes"].values()) == 480
    groups = summary["groups"]["category"]
    assert len(groups) == 12
    assert min(groups, key=lambda name: groups[name]["reward"]["mean"]) == "distractors"


def test_no_failed_rollout_has_a_reward(arithmetic: Any) -> None:
    _, records = arithmetic
    assert Counter((record["outcome"], record["reward"] is None) for record in records).keys() == {
        ("scored", False),
        ("failed", True),
    }
    assert all(record["failure"]["boundary"] == "model" for record in records if record["outcome"] == "failed")


def test_a_bad_call_is_told_and_mended(arithmetic: Any) -> None:
    _, records = arithmetic
    mended = [r for r in records if "The argument is called `expression`." in json.dumps(r["messages"])]
    assert len(mended) > 10
    assert {record["reward"] for record in mended if record["stop_reason"] == "final_answer"} <= {0.1, 1.0}
    first = next(message for message in mended[0]["messages"] if message["role"] == "tool")
    assert "formula" in first["content"]
    assert "expression" in first["content"]


def solver() -> Any:
    spec = importlib.util.spec_from_file_location("gsm8k_solver", CONFIGS / "gsm8k" / "solver.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The base URL of a double that answers with the solver."""
    if not solver().DATA.exists():
        pytest.skip(f"no GSM8K data at {solver().DATA}")
    reference = f"{CONFIGS / 'gsm8k' / 'solver.py'}:answer"
    command = [sys.executable, "-m", "runner.models.double", "--port", "0", "--answer", reference]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["base_url"]
        process.terminate()


@pytest.mark.parametrize(("profile", "rows"), [("direct", "0-199"), ("litellm", "0-19")])
def test_gsm8k_scores_exactly_what_the_solver_knows(
    profile: str, rows: str, server: str, osmosis: Run, tmp_path: Path
) -> None:
    words = ["--profile", "litellm"] if profile == "litellm" else []
    words += ["--set", f"model.base_url={server}", "--set", f"eval.output={tmp_path}", "--rows", rows, "--json"]
    done = osmosis("eval", "-w", CONFIGS / "gsm8k", *words, OPENAI_API_KEY="none")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    last = int(rows.partition("-")[2])
    lines = solver().DATA.read_text(encoding="utf-8").splitlines()[: last + 1]
    questions = [json.loads(line)["question"] for line in lines]
    assert summary["outcomes"]["scored"] == len(questions)
    assert summary["reward"]["mean"] == pytest.approx(sum(map(solver().is_right, questions)) / len(questions))
    assert summary["graders"]["used_calculator"]["mean"] > 0.9


def test_the_solver_is_wrong_on_a_fixed_tenth() -> None:
    if not solver().DATA.exists():
        pytest.skip(f"no GSM8K data at {solver().DATA}")
    assert solver().right_share() == pytest.approx(1165 / 1319)
    stranger = {"messages": [{"role": "user", "content": "Who are you?"}]}
    assert solver().answer(stranger)["content"].endswith("#### 0")
