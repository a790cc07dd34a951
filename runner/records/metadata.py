"""`metadata_of`: what the newest generation of the SDK calls a row's metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def metadata_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object in the column `metadata`, or of its JSON text, where a row has one; else the row itself.

    Datasets of the newest generation keep there what earlier ones kept in columns of their own, and code that was
    written for either looks it up without asking.
    """
    given = row.get("metadata")
    if isinstance(given, str) and given.lstrip().startswith("{"):
        try:
            given = json.loads(given)
        except ValueError:
            return row
    return given if isinstance(given, Mapping) else row
