"""The project of the runtime's tests and the stage of the server's, for code that brings Strands."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

_TESTS = Path(__file__).parent.parent


def _fixtures_of(folder: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"{folder}_for_strands", _TESTS / folder / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


project = _fixtures_of("runtime").project
stage = _fixtures_of("serve").stage
