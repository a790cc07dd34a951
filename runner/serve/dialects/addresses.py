"""Where a start's calls go: complete URLs from what the wire names."""

from __future__ import annotations

from runner.serve.urls import UrlPolicy

_GRAMMAR = UrlPolicy(("http://*", "https://*"))
"""Which addresses the operator allows is the admission's matter; what is no address at all is a wrong field."""


def joined(field: str, url: str, path: str) -> str:
    """`url` with `path` after it, unless it ends so. Raises `Refused` (422) for one that nothing can be put after."""
    _GRAMMAR.check(field, url, query=False)
    stem = url.rstrip("/")
    return stem if stem.endswith(path) else stem + path


def complete(field: str, url: str) -> str:
    """A URL that is called as it is. Raises `Refused` (422) for one that cannot be."""
    _GRAMMAR.check(field, url)
    return url
