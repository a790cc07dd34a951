"""The blocks of code of the seed documents, to the letter, and the stage and project that they are played over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.runtime.conftest import project
from tests.serve.conftest import stage

__all__ = ["project", "stage"]

BLOCKS = Path(__file__).parent / "blocks"


@pytest.fixture
def block() -> Callable[[str], str]:
    """A block by `document/name`."""
    return lambda name: (BLOCKS / f"{name}.txt").read_text(encoding="utf-8")
