"""The blocks of code of the seed documents, to the letter, and the stage and wire that they are played over."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).parent.parent
BLOCKS = Path(__file__).parent / "blocks"


def _module(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


stage = _module("seeds_tests_serve", TESTS / "serve" / "conftest.py").stage
project = _module("seeds_tests_runtime", TESTS / "runtime" / "conftest.py").project


@pytest.fixture(scope="session")
def wire() -> ModuleType:
    """`tests/wire.py`."""
    return _module("seeds_tests_wire", TESTS / "wire.py")


@pytest.fixture
def block() -> Callable[[str], str]:
    """A block by `document/name`."""
    return lambda name: (BLOCKS / f"{name}.txt").read_text(encoding="utf-8")
