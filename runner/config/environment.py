"""`[env]` and `[secrets]`: the process environment that tools, graders and agents see."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from runner.config.model import VARIABLE_PATTERN
from runner.config.section import Array, Section

EnvTable = dict[str, str]
"""`[env]`: variables set before user code is imported. A variable that is already set in the process wins."""


class SecretsSection(Section):
    """Variables that must be set, and whose values are never written anywhere."""

    required: Array[Annotated[str, Field(pattern=VARIABLE_PATTERN)]] = ()
    """Names of variables that must be set before a run begins."""
