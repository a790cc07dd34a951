"""Where a rollout's code may leave files: a folder of its own, made when it is first asked for.

The folder is a context variable, so that a tool that several rollouts share finds the one of the rollout that calls.
"""

from __future__ import annotations

from contextvars import ContextVar
from pathlib import Path

artifacts_at: ContextVar[Path | None] = ContextVar("artifacts_at", default=None)
"""The folder of this rollout's artifacts, whether it was made or not; None where nobody keeps any."""


def artifacts_folder() -> Path | None:
    """This rollout's folder for files worth keeping; None if nobody keeps them, or it cannot be made."""
    folder = artifacts_at.get()
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a full or read-only archive is no reason to end the rollout; the archive logs it when it writes
        return None
    return folder
