"""The stages of the engine's and the server's own tests, and the seeds' examples as they were written."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).parents[2]
SEEDS = Path(__file__).parent / "seeds"


def _module(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


project = _module("loop_tests_runtime", TESTS / "runtime" / "conftest.py").project
stage = _module("loop_tests_serve", TESTS / "serve" / "conftest.py").stage


@pytest.fixture
def seed() -> Callable[[str], str]:
    """An example of the seeds, to the letter."""
    return lambda name: (SEEDS / f"{name}.py.txt").read_text()
