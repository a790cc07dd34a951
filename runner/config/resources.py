"""`[resources.NAME]`: what the runner opens and closes for tools and graders."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from runner.config.reference import Reference
from runner.config.section import Section


class ResourceSection(Section):
    """A resource that is opened before it is needed and closed whatever happens."""

    open: Reference
    """A callable that returns a context manager, async or sync."""
    scope: Literal["run", "rollout"] = "run"
    """`run`: one for the whole run; `rollout`: a fresh one for each. Default: `run`, the cheaper."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Keyword arguments for `open`."""
