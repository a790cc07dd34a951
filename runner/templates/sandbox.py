"""The Jinja2 environment every template runs in: sandboxed, strict, nothing from outside the text.

Its tokens carry character offsets where Jinja2 has line numbers, so `node.lineno` of a parsed template is the
offset of that node plus one. Jinja2 itself knows lines only, which is too coarse to put a caret under a name.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any

from jinja2 import StrictUndefined, Undefined, UndefinedError
from jinja2.exceptions import SecurityError, TemplateSyntaxError
from jinja2.lexer import TokenStream
from jinja2.sandbox import ImmutableSandboxedEnvironment

MAX_TEXT = 10_000_000
"""Characters (or elements, or bits) that one operation of a template may make."""

_PADDING = frozenset({"center", "ljust", "rjust", "zfill", "expandtabs"})


class NullValue(Exception):
    """An expression that is null was to be written into a text."""


class LexingFailed(Exception):
    """The lexer could not read the text at `offset`."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class Sandbox(ImmutableSandboxedEnvironment):
    """Columns win over methods (`row.items` is the column), and no operation makes a text that fills the memory."""

    intercepted_binops = frozenset({"*", "**"})

    def _tokenize(self, source: str, name: Any, filename: Any = None, state: Any = None) -> TokenStream:
        tokens = self._at_offsets(source, name, filename, state)
        return TokenStream(self.lexer.wrap(tokens, name, filename), name, filename)

    def _at_offsets(self, source: str, name: Any, filename: Any, state: Any) -> Iterator[tuple[int, str, str]]:
        position = 0
        try:
            for _, kind, value in self.lexer.tokeniter(source, name, filename, state):
                # `{%-` makes the lexer drop white space before it: only that can lie between two tokens.
                position = max(position, source.find(value, position))
                yield position + 1, kind, value
                position += len(value)
        except TemplateSyntaxError as problem:
            raise LexingFailed(problem.message or "a syntax error", position) from None

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if _result_size(operator, left, right) > MAX_TEXT:
            raise SecurityError(f"the result of `{operator}` is too large")
        return super().call_binop(context, operator, left, right)

    def call(self, context: Any, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        name = getattr(obj, "__name__", "")
        if name in _PADDING and any(isinstance(arg, int) and arg > MAX_TEXT for arg in (*args, *kwargs.values())):
            raise SecurityError(f"`{name}` would make a text that is too large")
        return super().call(context, obj, *args, **kwargs)


def _result_size(operator: str, left: Any, right: Any) -> int:
    """Characters, elements or bits the result may have; 0 where it cannot be large."""
    if operator == "*":
        for many, times in ((left, right), (right, left)):
            if isinstance(many, str | bytes | list | tuple) and isinstance(times, int):
                return len(many) * max(times, 0)
    if isinstance(left, int) and isinstance(right, int):
        bits = abs(left).bit_length()
        return bits * max(right, 0) if operator == "**" else bits + right.bit_length()
    return 0


class Missing(StrictUndefined):
    """Any use of a name that is not there is an error that says what is there."""

    @property
    def _undefined_message(self) -> str:
        if self._undefined_hint:
            return self._undefined_hint
        name = str(self._undefined_name)
        if isinstance(self._undefined_obj, Mapping):
            return f"there is no `{name}`{near(name, self._undefined_obj)}"
        if self._undefined_name is not None and isinstance(self._undefined_obj, str | int | float | list | type(None)):
            return f"{_kind(self._undefined_obj)} has no `{name}`"
        return f"`{name}` is not defined"


def near(name: str, names: Iterable[str]) -> str:
    """The end of a sentence about a missing name: the nearest name, or else the names there are."""
    known = [str(key) for key in names]
    if nearest(name, known) or not known:
        return nearest(name, known)
    listed = ", ".join(f"`{key}`" for key in known[:12])
    return f"; there is {listed}{', …' if len(known) > 12 else ''}"


def nearest(name: str, names: Iterable[str]) -> str:
    """`; did you mean ...?`, or nothing if no name is near."""
    from difflib import get_close_matches

    match = get_close_matches(name, list(names), n=1, cutoff=0.6)
    return f"; did you mean `{match[0]}`?" if match else ""


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    names = {bool: "a boolean", str: "a string", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "the value")


def to_text(value: Any) -> Any:
    """What an expression's value looks like in the text. Raises NullValue, or UndefinedError for a missing name."""
    if isinstance(value, str):
        return value
    if value is None:
        raise NullValue
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Undefined):
        return str(value)
    if isinstance(value, Mapping | list | tuple):
        return to_json(value)
    if callable(value):
        raise UndefinedError(f'`{getattr(value, "__name__", "it")}` is a method, not a value; call it, or use ["…"]')
    return str(value)


def to_json(value: Any, indent: int | None = None) -> str:
    """The `tojson` filter: JSON as it is, without HTML escapes; null is `null`."""
    return json.dumps(value, ensure_ascii=False, indent=indent, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, Undefined):
        return str(value)  # raises, and names what is missing
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    return str(value)


def _center(value: Any, width: int = 80) -> str:
    if width > MAX_TEXT:
        raise SecurityError("`center` would make a text that is too large")
    return str(value).center(width)


@cache
def sandbox() -> Sandbox:
    """The one environment; its templates share no state."""
    environment = Sandbox(undefined=Missing, autoescape=False, keep_trailing_newline=True, finalize=to_text)
    environment.filters["tojson"] = to_json
    environment.filters["center"] = _center
    for name in ("lipsum", "cycler", "joiner"):
        del environment.globals[name]
    return environment
