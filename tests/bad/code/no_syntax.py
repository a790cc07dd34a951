"""A module whose last line lost its indentation."""

from __future__ import annotations


def search(query: str) -> str:
    text = query.strip()  # noqa: F841


return text  # noqa: F706, F821
