"""The stage of the server's tests, the project of the engine's, and the wire between server and controller."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).parent.parent


def _module(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


stage = _module("agents_tests_serve", TESTS / "serve" / "conftest.py").stage
project = _module("agents_tests_runtime", TESTS / "runtime" / "conftest.py").project


@pytest.fixture(scope="session")
def wire() -> ModuleType:
    """`tests/wire.py`."""
    return _module("agents_tests_wire", TESTS / "wire.py")
