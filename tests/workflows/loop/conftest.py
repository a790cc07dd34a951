"""The stages of the engine's and the server's own tests, and the seeds' examples as they were written (tests/seeds)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runtime.conftest import project
from tests.serve.conftest import stage

__all__ = ["project", "stage"]

TESTS = Path(__file__).parents[2]
BLOCKS = TESTS / "seeds" / "blocks"
JOINED = {"quick_start": ("agent_loop", "create_app"), "reward": ("reward", "helpers", "extract")}
"""Examples that a document gives in several blocks."""


def _block(name: str) -> str:
    found = [BLOCKS / folder / f"{name}.py.txt" for folder in ("agent-loop-guide", "remote-rollout-sdk")]
    return next(path for path in found if path.is_file()).read_text(encoding="utf-8")


@pytest.fixture
def seed() -> Callable[[str], str]:
    """An example of the seeds, to the letter."""
    return lambda name: "\n\n".join(map(_block, JOINED.get(name, (name,))))
