"""`{ env = "NAME" }` in a table to the variable's value, when what needs it is opened."""

from __future__ import annotations

import os
from collections.abc import Mapping

from runner.config.model import EnvName


def values_of(table: Mapping[str, str | EnvName]) -> dict[str, str]:
    """The table with the values of the variables that it names; "" for one that is not set: the check has told that."""
    return {
        name: os.environ.get(value.env, "") if isinstance(value, EnvName) else value for name, value in table.items()
    }
