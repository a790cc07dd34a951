"""The stages of the engine's and the server's own tests, and the seeds' examples as they were written (tests/seeds)."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).parents[2]
BLOCKS = TESTS / "seeds" / "blocks"
JOINED = {"quick_start": ("agent_loop", "create_app"), "reward": ("reward", "helpers", "extract")}
"""Examples that a document gives in several blocks."""


def _module(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


project = _module("loop_tests_runtime", TESTS / "runtime" / "conftest.py").project
stage = _module("loop_tests_serve", TESTS / "serve" / "conftest.py").stage


def _block(name: str) -> str:
    found = [BLOCKS / folder / f"{name}.py.txt" for folder in ("agent-loop-guide", "remote-rollout-sdk")]
    return next(path for path in found if path.is_file()).read_text(encoding="utf-8")


@pytest.fixture
def seed() -> Callable[[str], str]:
    """An example of the seeds, to the letter."""
    return lambda name: "\n\n".join(map(_block, JOINED.get(name, (name,))))
