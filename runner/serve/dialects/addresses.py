"""Where a start's calls go: complete URLs from what the wire names.

Which addresses the operator allows is the admission's matter; what is no address at all is a wrong field.
"""

from __future__ import annotations

from runner.serve.urls import HAS_QUERY, read_url, refused_url


def joined(field: str, url: str, path: str) -> str:
    """`url` with `path` after it, unless it ends so. Raises `Refused` (422) for one that nothing can be put after."""
    found = read_url(url)
    if isinstance(found, str):
        raise refused_url(field, found)
    if found[1]:
        raise refused_url(field, HAS_QUERY)
    stem = url.rstrip("/")
    return stem if stem.endswith(path) else stem + path


def complete(field: str, url: str) -> str:
    """A URL that is called as it is. Raises `Refused` (422) for one that cannot be."""
    found = read_url(url)
    if isinstance(found, str):
        raise refused_url(field, found)
    return url
