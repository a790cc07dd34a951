"""What a refused value is and how it is mended: the label under the caret, and the text to write instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from runner.config.graders import EXTRACTORS
from runner.config.layers import Origins, looks_secret
from runner.config.names import dotted
from runner.diag.diagnostic import Fix, Path, Place
from runner.records.quick import quick

PATTERNS = (
    ("https?", "an address that begins with `http://` or `https://`", 'for example `"http://localhost:8000/v1"`'),
    ("A-Za-z_][A-Za-z0-9_]*", "the name of an environment variable", "letters, digits and `_`"),
    (r"\d+(?:-\d+)?", "numbers of rows, counted from 0", 'for example `"3,7,10-20"`'),
    ("A-Za-z0-9_.-", "a name of letters, digits, `_`, `.` and `-`", "no spaces"),
    ("A-Za-z0-9_:]*$", "a name of letters, digits, `_` and `:`", 'for example `"osmosis_rollout"`'),
    (r"[^\s/?#@]+", "a host name or an IP address", "without scheme, path or user"),
    ("[-a-z0-9.]*[a-z0-9]", "a name of small letters, digits and `-`", "as Kubernetes has them"),
    (r"^\S", "a name", "this names nothing"),
    (r"\x21-\x7e", "a name of printable ASCII characters", 'for example `"main"`'),
)
"""Of a pattern that a value does not match: a telling part, what it wants, and an example."""


@quick
class Case:
    """One refusal: the path, the value there, and what the models said of it."""

    path: Path
    value: Any
    context: Mapping[str, Any]
    type: str
    tree: Mapping[str, Any]
    origins: Origins

    @property
    def name(self) -> str:
        return dotted(self.path)

    @property
    def place(self) -> Place | None:
        return self.origins.value_place(self.path)

    @property
    def key_place(self) -> Place | None:
        return self.origins.key_place(self.path)


def is_plain(case: Case, place: Place) -> bool:
    """Whether the text at `place` is the value and nothing else, so that it may be replaced."""
    written = place.source.text[place.start : place.end]
    if isinstance(case.value, str):
        return written in (f'"{case.value}"', f"'{case.value}'", case.value)
    return not written.startswith("[")


def cure(case: Case, wanted: str) -> tuple[str, str | None]:
    """The label under the caret, and the text to write instead where that is mechanical."""
    value, place = case.value, case.place
    written = place.source.text[place.start : place.end] if place is not None else ""
    if isinstance(value, str) and not looks_secret(case.path):
        bare = value.strip()
        if wanted in ("a number", "a whole number") and re.fullmatch(_NUMBERS[wanted], bare):
            return f"remove the quotes: `{bare}`", bare
        if wanted.startswith("`true`") and bare.lower() in ("true", "false", "yes", "no", "on", "off"):
            word = "true" if bare.lower() in ("true", "yes", "on") else "false"
            return (f"remove the quotes: `{word}`" if bare == word else f"write `{word}`"), word
    if wanted == "a string" and isinstance(value, int | float) and not looks_secret(case.path):
        text = f'"{written or value}"'
        return f"add quotes: `{text}`", text
    if wanted == "a whole number" and isinstance(value, float) and value.is_integer():
        return f"write `{int(value)}`", str(int(value))
    if wanted == "a table" and case.path[-1] == "extract" and value in EXTRACTORS:
        text = f"{{ {value} = true }}" if value in ("boxed", "last_line", "number") else f'{{ {value} = "…" }}'
        return f"write `{text}`", None
    if wanted == "an array" and not isinstance(value, dict | list) and written:
        return f"put it in brackets: `[{written}]`", f"[{written}]"
    return f"expected {wanted}", None


_NUMBERS = {"a number": r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", "a whole number": r"[+-]?\d+"}


def table_help(case: Case) -> tuple[str, ...]:
    """How the table would be written, for a value that someone put where a table belongs."""
    if len(case.path) != 1 or not isinstance(case.value, str | list):
        return ()
    section = str(case.path[0])
    if section == "model" and isinstance(case.value, str):
        return (f'write it as a table: `[model]` with `id = "{case.value}"`',)
    if section in ("tools", "graders", "roles", "resources"):
        return (f"each has its own table: `[{section}.NAME]`",)
    return (f"write it as a table: `[{section}]`",)


def describe_value(value: Any, *, show: bool = True) -> str:
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, int | float):
        return f"the number {value}" if show else "a number"
    names = ((str, "a string"), (dict, "a table"), (list | tuple, "an array"))
    return next((name for kind, name in names if isinstance(value, kind)), "a date or time")


def word_fix(case: Case, near: str | None) -> Fix | None:
    place = case.place
    if near is None or place is None or not isinstance(case.value, str):
        return None
    written = place.source.text[place.start : place.end]
    return Fix(place, written.replace(case.value, near)) if case.value in written else None


def better_reference(text: str) -> tuple[str, str | None]:
    if not text:
        return "this names nothing", None
    if re.fullmatch(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+", text) and not text.endswith(".py"):
        module, _, name = text.rpartition(".")
        return f"put a colon before the name: `{module}:{name}`", f"{module}:{name}"
    if re.fullmatch(r"[^./:][^:]*\.py:[A-Za-z_][\w.]*", text):
        return f"begin with `./`: `./{text}`", f"./{text}"
    if " " in text and re.fullmatch(r"[\w./]+:[A-Za-z_][\w.]*", text.replace(" ", "")):
        return f"without the space: `{text.replace(' ', '')}`", text.replace(" ", "")
    if text.endswith(".py"):
        return f"add the name: `{text if text.startswith('.') else './' + text}:NAME`", None
    if re.fullmatch(r"[A-Za-z_]\w*", text):
        return f"add the module: `module:{text}`", None
    return "", None
