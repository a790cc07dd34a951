"""`plain`: a template of nothing but text and `{{ row.column }}`, read without Jinja2.

Nearly every template is one, and Jinja2 costs 25 ms to import: a file that needs nothing more does not pay for it. What
is not surely plain is left to Jinja2, so that the two can never differ; a test compares them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from runner.records.quick import quick
from runner.templates.problem import Path

_REFERENCE = re.compile(r"\{\{ *([A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*) *\}\}")
_MARKUP = re.compile(r"\{[{%#]|[%#}]\}|\{\Z|\r")
_RESERVED = frozenset({
    "true", "false", "none", "True", "False", "None", "and", "or", "not", "in", "is", "if", "else", "elif",
    "self", "super", "caller", "loop", "varargs", "kwargs", "range", "dict", "lipsum", "cycler", "joiner", "namespace",
})  # fmt: skip
"""First words that mean something to Jinja2: its own names, which are no reference to one of ours."""


@quick
class Variable:
    """One reference: its path (`("row", "user_prompt")`) and the range of characters that says it.

    `optional` is True where the template copes with its absence.
    """

    path: Path
    offset: int
    length: int
    optional: bool = False

    def __str__(self) -> str:
        return spell(self.path)


def spell(path: Path) -> str:
    """The path as one would write it: `row.a["b c"]`."""
    return path[0] + "".join(f".{step}" if step.isidentifier() else f'["{step}"]' for step in path[1:])


class Plain(NamedTuple):
    """Texts and references in order, and the references with their places."""

    parts: list[str | Path]
    variables: list[Variable]


def plain(text: str) -> Plain | None:
    """The parts of `text`, or None for a text that Jinja2 must read."""
    found = Plain([], [])
    end = 0
    for reference in _REFERENCE.finditer(text):
        path = tuple(reference[1].split("."))
        if path[0] in _RESERVED or not _add_text(found, text[end : reference.start()]):
            return None
        found.parts.append(path)
        found.variables.append(Variable(path, reference.start(1), len(reference[1])))
        end = reference.end()
    return found if _add_text(found, text[end:]) else None


def _add_text(found: Plain, text: str) -> bool:
    if text:
        found.parts.append(text)
    return _MARKUP.search(text) is None
