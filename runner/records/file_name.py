"""Names for files after ids that others chose: never a path, never two ids in one file."""

from __future__ import annotations

import hashlib
import re

_LONGEST = 255
"""Bytes of a file's name that every common file system takes."""


def file_name(text: str) -> str:
    """The text as far as a file's name can hold it, and a mark that keeps different texts apart."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", text).strip("._")[:48] or "rollout"
    mark = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{stem}_{mark}"


def is_segment(text: str) -> bool:
    """Whether a text can be one segment of a path, in a URL or a file system."""
    return text not in ("", ".", "..") and "/" not in text and "\\" not in text and "\0" not in text


def segment(text: str) -> str:
    """The text itself if it is one legal path segment that a file system takes, else its `file_name`."""
    fits = len(text.encode("utf-8", "surrogatepass")) <= _LONGEST and _is_utf8(text)
    return text if is_segment(text) and fits else file_name(text)


def _is_utf8(text: str) -> bool:
    return not any("\ud800" <= sign <= "\udfff" for sign in text)
