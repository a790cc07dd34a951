"""How tests of this folder run a shipped config as a user would."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def osmosis(tmp_path: Path) -> Run:
    """`osmosis("eval", "-w", ...)` in a fresh folder; keywords are environment variables."""
    script = str(Path(sys.executable).parent / "osmosis-run")
    clean = {key: value for key, value in os.environ.items() if not key.startswith("OSMOSIS_RUN")}
    clean["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), clean["PATH"]])  # as where it is activated

    def call(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        env = {**clean, **environment}
        command = [script, *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False, env=env)

    return call
