"""The stage of the server's tests and the project of the engine's."""

from __future__ import annotations

from tests.runtime.conftest import project
from tests.serve.conftest import stage

__all__ = ["project", "stage"]
