"""The project of the runtime's tests and the stage of the server's, for code that brings Strands."""

from __future__ import annotations

from tests.runtime.conftest import project
from tests.serve.conftest import stage

__all__ = ["project", "stage"]
