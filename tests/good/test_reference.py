"""The reference-sized file is sound, uses every section, is checked in time and without what it does not need."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent / "reference"
COMMAND = str(Path(sys.executable).parent / "osmosis-run")
SECTIONS = {
    "schema", "extends", "workflow", "model", "roles", "sampling", "limits", "tools", "resources", "graders", "reward",
    "dataset", "eval", "env", "secrets", "matrix", "profiles",
}  # fmt: skip


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *words], capture_output=True, text=True, timeout=60, cwd=HERE, check=False)


def test_it_uses_every_section() -> None:
    assert set(tomllib.loads((HERE / "workflow.toml").read_text("utf-8"))) == SECTIONS


@pytest.mark.parametrize("words", [[], ["--profile", "ci"], ["--no-import"], ["--set", "sampling.temperature=0.5"]])
def test_it_is_sound(words: list[str]) -> None:
    done = run("validate", *words)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "workflow.toml: ok (4 tools, 4 graders)\n"


def test_its_dataset_has_what_it_needs() -> None:
    done = run("validate", "--dataset", "data/tickets.jsonl")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "workflow.toml: ok (4 tools, 4 graders, 3 rows)\n"


def test_its_own_tests_pass() -> None:
    done = run("test")
    assert done.returncode == 0
    assert "2 passed" in done.stdout


def test_a_check_imports_no_more_than_it_needs() -> None:
    """A plain template needs no Jinja2, a plain schema no JSON Schema library, and nobody is called."""
    code = (
        "import sys\n"
        "from runner.cli.table import run\n"
        "assert run(['validate']) == 0\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, cwd=HERE, check=True
    )
    heavy = {"jinja2", "jsonschema", "referencing", "rich", "aiohttp", "pyreqwest", "litellm", "httpx", "pyarrow",
             "sympy", "math_verify", "asyncio", "anyio", "ssl", "multiprocessing"}  # fmt: skip
    assert not heavy & set(done.stdout.split())
