"""The project of the runtime's tests, the stage of the server's, and the wire, for code that brings Strands."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

_TESTS = Path(__file__).parent.parent


def _module(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{name}_for_strands", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


project = _module("runtime", _TESTS / "runtime" / "conftest.py").project
stage = _module("serve", _TESTS / "serve" / "conftest.py").stage


@pytest.fixture(scope="session")
def wire() -> ModuleType:
    """`tests/wire.py`."""
    return _module("wire", _TESTS / "wire.py")
