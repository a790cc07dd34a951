"""Where a start's calls go: complete URLs from what the wire names, and ids as headers can carry them."""

from __future__ import annotations

from urllib.parse import quote

from runner.serve.urls import UrlPolicy

_GRAMMAR = UrlPolicy(("http://*", "https://*"))
"""Which addresses the operator allows is the admission's matter; what is no address at all is a wrong field."""
_PRINTABLE = "".join(map(chr, range(0x21, 0x7F))).replace("%", "")


def joined(field: str, url: str, path: str) -> str:
    """`url` with `path` after it, unless it ends so. Raises `Refused` (422) for one that nothing can be put after."""
    _GRAMMAR.check(field, url, query=False)
    stem = url.rstrip("/")
    return stem if stem.endswith(path) else stem + path


def complete(field: str, url: str) -> str:
    """A URL that is called as it is. Raises `Refused` (422) for one that cannot be."""
    _GRAMMAR.check(field, url)
    return url


def header_value(text: str) -> str:
    """`text` if a header carries it unchanged, else percent-encoded."""
    fits = text.isascii() and text.isprintable() and text == text.strip()
    return text if fits else quote(text, safe=_PRINTABLE + " " if text == text.strip() else _PRINTABLE)
