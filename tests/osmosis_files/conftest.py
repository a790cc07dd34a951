"""A workspace of the SDK to work in, and the command as a user runs it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A copy of `workspace/`: rollouts, datasets and a file of each kind."""
    return Path(shutil.copytree(Path(__file__).parent / "workspace", tmp_path / "workspace"))


@pytest.fixture
def osmosis(workspace: Path) -> Run:
    """`osmosis("import", ...)` in the workspace; keywords are environment variables."""
    gone = ("OSMOSIS", "NO_COLOR", "FORCE_COLOR", "OPENAI_API_KEY", "MATH_")
    clean = {key: value for key, value in os.environ.items() if not key.startswith(gone)}
    script = str(Path(sys.executable).parent / "osmosis-run")

    def call(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [script, *map(str, words)]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=60,
            cwd=workspace,
            check=False,
            env={**clean, **environment},
        )

    return call
