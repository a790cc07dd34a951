"""What each command must not import: start-up time is a symptom of the direction of dependencies."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ARITHMETIC = str(ROOT / "configs" / "arithmetic")
REFERENCE = str(ROOT / "tests" / "good" / "reference")

HEAVY = {"litellm", "openai", "httpx", "aiohttp", "pyarrow", "sympy", "math_verify", "latex2sympy2_extended", "rich"}

SPY = """
import sys
from runner.cli.table import run
code = run(sys.argv[1:])
tops = sorted({name.partition(".")[0] for name in sys.modules})
ours = sorted(name for name in sys.modules if name.startswith("runner."))
sys.stderr.write("\\nLOADED " + " ".join([*tops, *ours]) + "\\n")
sys.exit(code)
"""


def loaded(*words: str) -> set[str]:
    """The top-level packages, and our modules, that a command has imported when it ends."""
    done = subprocess.run([sys.executable, "-c", SPY, *words], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stderr.rpartition("LOADED ")[2].split())


def test_help_imports_nothing_but_click() -> None:
    names = loaded("--help")
    forbidden = {*HEAVY, "pydantic", "asyncio", "tomllib", "jinja2", "jsonschema", "json", "typing_extensions"}
    assert not names & forbidden
    ours = {name for name in names if name.startswith("runner.")}
    assert ours == {"runner.cli", "runner.cli.table", "runner.cli.console", "runner.cli.exit", "runner.cli.interrupt"}


def test_the_help_of_a_command_imports_no_floor_below() -> None:
    for command in ("validate", "eval", "show", "test", "render", "init", "export"):
        names = loaded(command, "--help")
        assert not names & {*HEAVY, "pydantic", "jinja2", "jsonschema"}, command
        assert not {name for name in names if name.startswith(("runner.config", "runner.build", "runner.store"))}, (
            command
        )


@pytest.mark.parametrize("folder", [ARITHMETIC, REFERENCE])
def test_validate_stays_light(folder: str) -> None:
    names = loaded("validate", "--no-import", folder)
    assert not names & {*HEAVY, "anyio", "sqlite3"}
    floors = ("runner.batch", "runner.store", "runner.runtime", "runner.telemetry")
    assert not {name for name in names if name.startswith(floors)}
    assert "runner.models.double" not in names


def test_one_row_imports_no_library_that_it_does_not_use(tmp_path: Path) -> None:
    words = ["eval", "-w", ARITHMETIC, "--rows", "0", "--attempts", "1", "--set", f"eval.output={tmp_path}"]
    names = loaded(*words)
    assert not names & (HEAVY - {"rich"}), "rich may draw the progress, the others have no work here"
    assert "rich" not in names, "stderr is no terminal here"
