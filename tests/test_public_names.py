"""What `import runner` promises: light, exact, typed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import runner

FILE = Path(__file__).parents[1] / "configs" / "arithmetic" / "workflow.toml"


def test_every_public_name_is_there_and_nothing_else_is_promised() -> None:
    for name in runner.__all__:
        assert getattr(runner, name) is not None
    assert set(dir(runner)) == set(runner.__all__)
    assert not hasattr(runner, "no_such_name")


def test_importing_the_package_loads_nothing() -> None:
    code = "import sys, runner; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert [name for name in loaded if name.startswith("runner")] == ["runner"]
    assert not {"pydantic", "asyncio", "json", "click", "jinja2"} & set(loaded)


def test_the_package_says_that_it_is_typed() -> None:
    assert Path(runner.__file__).with_name("py.typed").is_file()


def test_build_is_the_function_whatever_was_imported_before() -> None:
    rest = f"from runner import load\nfrom pathlib import Path\nprint(build(load(Path({str(FILE)!r}))).name)"
    for line in ("from runner import build, run_rollout", "from runner import run_rollout, build"):
        done = subprocess.run([sys.executable, "-c", f"{line}\n{rest}"], capture_output=True, text=True, check=True)
        assert done.stdout == "arithmetic\n"
