"""What can go wrong with a template: `TemplateProblem` when it is read, `TemplateError` when it is rendered."""

from __future__ import annotations

import re
from typing import TypeAlias

Path: TypeAlias = tuple[str, ...]
"""A reference's steps: `("row", "user_prompt")`."""


class TemplateProblem(Exception):
    """The text is not a template. `offset` and `length` are characters inside it; `offset` is None if unknown."""

    def __init__(self, message: str, offset: int | None = None, length: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.length = length


class TemplateError(Exception):
    """A template could not be rendered with these names.

    `path` is the reference at fault, where it is known; `null` is True when its value is there but null.
    """

    def __init__(self, message: str, path: Path | None = None, *, null: bool = False) -> None:
        super().__init__(message)
        self.path = path
        self.null = null


def normal(text: str) -> str:
    """Jinja2 reads every line end as `\\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def in_text(text: str, offset: int) -> int:
    """The place in the author's text of an offset in the text Jinja2 read, where `\\r\\n` is one character."""
    if "\r\n" not in text:
        return offset
    for found in re.finditer("\r\n", text):
        if found.start() >= offset:
            break
        offset += 1
    return offset
