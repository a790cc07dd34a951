"""How tests of this folder run the command as a user would."""

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
    """`osmosis("eval", "-w", ...)` in a fresh folder, or in `folder`; keywords are environment variables."""
    ours = ("OSMOSIS_RUN", "NO_COLOR", "FORCE_COLOR")
    clean = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    script = str(Path(sys.executable).parent / "osmosis-run")

    def call(*words: str | Path, folder: Path = tmp_path, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [script, *map(str, words)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=120, cwd=folder, check=False, env={**clean, **environment}
        )

    return call
