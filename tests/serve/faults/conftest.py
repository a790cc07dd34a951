"""A small workflow, and the shipped `simulate` as its controller: real processes, real sockets."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.capitals import write_capitals

Simulate = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def simulate(tmp_path_factory: pytest.TempPathFactory) -> Simulate:
    """`simulate(*words, **settings)`: the report of `osmosis-run simulate`; `__` in a setting's name stands for `.`."""
    folder = tmp_path_factory.mktemp("capitals")
    write_capitals(folder, calling='delay = "300ms"')

    def play(*words: str, **settings: Any) -> dict[str, Any]:
        said = [f"{name.replace('__', '.')}={value}" for name, value in settings.items()]
        command = [sys.executable, "-P", "-m", "runner.cli.main", "simulate", str(folder), "--json", *words]
        command += [word for each in said for word in ("--set", each)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
        assert ended.stdout, ended.stderr
        facts: dict[str, Any] = json.loads(ended.stdout)
        return facts

    return play
