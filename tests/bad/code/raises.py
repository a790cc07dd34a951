"""A module that fails while it is imported."""

from __future__ import annotations

SETTINGS = {"region": "eu"}
REGION = SETTINGS["regoin"]


def search(query: str) -> str:
    return f"{query} in {REGION}"
