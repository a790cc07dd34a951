"""The typed configs that workflows and graders of the second and third generation are made with."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class ConcurrencyConfig(BaseModel):
    """How many may be at work at once; None is no limit of its own."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True, defer_build=True)

    max_concurrent: Annotated[int, Field(ge=1)] | None = None


class BaseConfig(BaseModel):
    """What every config has. Subclass it and add fields; assignments are checked, fields of any type are taken."""

    model_config = ConfigDict(extra="allow", validate_assignment=True, arbitrary_types_allowed=True, defer_build=True)

    name: str
    description: str | None = None


class AgentWorkflowConfig(BaseConfig):
    """The typed config of a workflow, filled from `[workflow] config`. Subclass it and add fields."""

    name: str = "workflow"
    concurrency: ConcurrencyConfig = Field(default_factory=ConcurrencyConfig)


class GraderConfig(BaseConfig):
    """The typed config of a `Grader`, filled from the grader's `config`. Subclass it and add fields."""

    name: str = "grader"
    concurrency: ConcurrencyConfig = Field(default_factory=ConcurrencyConfig)


def places(config: object) -> int | None:
    """How many may be at work at once by `config`, whatever kind of config it is; None where it does not say."""
    found = getattr(getattr(config, "concurrency", None), "max_concurrent", None)
    return found if isinstance(found, int) and not isinstance(found, bool) and found > 0 else None
