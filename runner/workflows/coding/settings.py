"""`CodingSettings`: `[workflow] config` of `agent = "coding"`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class CodingSettings(BaseModel):
    """What the coding agent is told and held to. A limit that is None is none."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    sandbox: str | None = None
    """Where the repository lies. Default: the sandbox of its built-in tools, or the only one there is."""
    folder: str = Field(default=".", min_length=1)
    """The repository's folder inside, from where commands start."""
    test_command: str | None = None
    """How the tests are run. Told to the model, and a command that holds it counts as a run of the tests."""
    test_after_changes: bool = True
    """Whether an agent that ends with edits which no test run followed is reminded of that, once."""
    max_files_to_explore: int | None = Field(default=20, ge=1)
    """After so many files viewed and none edited, the model is told to make its change."""
    max_implementation_attempts: int | None = Field(default=None, ge=1)
    """So many failed test runs, each after new edits, end the rollout ("max_attempts")."""
    max_patch_bytes: int = Field(default=4 << 20, ge=1)
    """A longer patch is not kept: somebody has added what is no source."""
