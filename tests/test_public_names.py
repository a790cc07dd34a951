"""What `import runner` promises: light, exact, typed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import runner


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
