"""`name(a=1, b="x, y", [1, 2])`: calls as a programmer writes them, read from a text that a model wrote.

Values are JSON's or Python's; what is neither is the text up to the next comma or bracket, as models leave quotes out.
Nothing is ever evaluated.
"""

from __future__ import annotations

import json
import re
from typing import Any

from runner.workflows.parsers.parser import WrittenCall

NAME = re.compile(r"[A-Za-z_][\w./-]*")
_KEYWORD = re.compile(r"\s*([A-Za-z_]\w*)\s*=(?!=)")
_SPACE = re.compile(r"\s*")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_QUOTE = re.compile(r"[rbuf]?(\"\"\"|'''|\"|')", re.IGNORECASE)
_WORDS = {"true": True, "false": False, "null": None, "none": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\", '"': '"', "'": "'", "\n": ""}
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_DEEPEST = 60


class Unreadable(Exception):
    """What is wrong with a call, as a sentence to the model."""


def read_call(text: str, at: int) -> tuple[WrittenCall, int]:
    """The call whose name begins at `at`, and where it ends. Raises `Unreadable`."""
    name = NAME.match(text, at)
    if name is None:
        raise Unreadable("A call begins with the name of a tool.")
    after = _skip(text, name.end())
    if after >= len(text) or text[after] != "(":
        raise Unreadable(f"`{name[0]}` is followed by no `(`.")
    return _Arguments(text, name[0]).read(after + 1)


def literal(value: Any) -> str:
    """`value` as it is written in a call."""
    return json.dumps(value, ensure_ascii=False)


class _Arguments:
    def __init__(self, text: str, name: str) -> None:
        self.text = text
        self.name = name
        self.named: dict[str, Any] = {}
        self.positional: list[Any] = []
        self.source: dict[str, str] = {}

    def read(self, at: int) -> tuple[WrittenCall, int]:
        text = self.text
        at = _skip(text, at)
        if text[at : at + 1] == ")":
            return WrittenCall(self.name), at + 1
        while True:
            at = _skip(text, self._argument(at))
            mark = text[at : at + 1]
            if mark == ",":
                at = _skip(text, at + 1)
                if text[at : at + 1] != ")":
                    continue
                mark = ")"
            if mark == ")":
                call = WrittenCall(self.name, self.named, tuple(self.positional), self.source)
                return call, at + 1
            raise Unreadable(f"`{self.name}(` is never closed." if not mark else _unexpected(text, at, "`,` or `)`"))

    def _argument(self, at: int) -> int:
        keyword = _KEYWORD.match(self.text, at)
        if keyword is None:
            if self.named:
                raise Unreadable(f"In `{self.name}(…)` a value without a name follows one that has a name.")
            value, end, _ = _value(self.text, at)
            self.positional.append(value)
            return end
        name = keyword[1]
        if name in self.named:
            raise Unreadable(f"`{self.name}(…)` gives `{name}` twice.")
        value, end, bare = _value(self.text, keyword.end())
        self.named[name] = value
        if bare:
            self.source[name] = bare
        return end


def _value(text: str, at: int, depth: int = 0) -> tuple[Any, int, str]:
    """A value, where it ends, and its text if it stood there without quotes or brackets. Raises `Unreadable`."""
    if depth > _DEEPEST:
        raise Unreadable("The arguments are nested too deeply.")
    at = _skip(text, at)
    quote = _QUOTE.match(text, at)
    if quote is not None:
        said, end = _string(text, quote)
        return said, end, ""
    if text[at : at + 1] in ("[", "{"):
        value: Any
        try:
            value, end = _list(text, at + 1, depth) if text[at] == "[" else _object(text, at + 1, depth)
            if _is_delimited(text, end):
                return value, end, ""
        except Unreadable:
            if depth:
                raise
            _closing(text, at)  # a bracket that is never closed is a fault, other brackets are a text
    return _bare(text, at)


def _string(text: str, quote: re.Match[str]) -> tuple[str, int]:
    mark, raw = quote[1], quote[0][0] in "rR"
    made: list[str] = []
    at = quote.end()
    while True:
        if at >= len(text):
            raise Unreadable(f"A text is never closed: {text[quote.start() : quote.start() + 30]!r} has no end.")
        if text.startswith(mark, at):
            end = at + len(mark)
            if not _is_delimited(text, end):
                cure = f" A {mark[0]} inside a text is written as \\{mark[0]}."
                raise Unreadable(_unexpected(text, end, "`,` or `)`") + cure)
            return "".join(made), end
        if text[at] == "\\" and at + 1 < len(text) and not raw:
            piece, at = _escape(text, at + 1)
            made.append(piece)
        else:
            made.append(text[at])
            at += 1


def _escape(text: str, at: int) -> tuple[str, int]:
    character = text[at]
    if character in _ESCAPES:
        return _ESCAPES[character], at + 1
    for mark, digits in (("u", 4), ("x", 2), ("U", 8)):
        code = text[at + 1 : at + 1 + digits]
        if character == mark and re.fullmatch(rf"[0-9a-fA-F]{{{digits}}}", code) and int(code, 16) < 0x110000:
            return _paired(text, int(code, 16), at + 1 + digits)
    return "\\" + character, at + 1  # as Python does: a regular expression keeps its backslashes


def _paired(text: str, code: int, at: int) -> tuple[str, int]:
    """JSON writes a character beyond the first plane as two halves."""
    second = re.match(r"\\u([dD][c-fC-F][0-9a-fA-F]{2})", text[at : at + 6])
    if 0xD800 <= code < 0xDC00 and second is not None:
        return chr(0x10000 + ((code - 0xD800) << 10) + (int(second[1], 16) - 0xDC00)), at + 6
    return chr(code), at


def _list(text: str, at: int, depth: int) -> tuple[list[Any], int]:
    made: list[Any] = []
    while True:
        at = _skip(text, at)
        if text[at : at + 1] == "]":
            return made, at + 1
        value, at, _ = _value(text, at, depth + 1)
        made.append(value)
        at = _next(text, at, "]")


def _object(text: str, at: int, depth: int) -> tuple[dict[str, Any], int]:
    made: dict[str, Any] = {}
    while True:
        at = _skip(text, at)
        if text[at : at + 1] == "}":
            return made, at + 1
        quote = _QUOTE.match(text, at)
        if quote is None:
            raise Unreadable(_unexpected(text, at, "a name in quotes"))
        key, at = _string(text, quote)
        at = _skip(text, at)
        if text[at : at + 1] != ":":
            raise Unreadable(_unexpected(text, at, "`:`"))
        made[key], at, _ = _value(text, at + 1, depth + 1)
        at = _next(text, at, "}")


def _next(text: str, at: int, closer: str) -> int:
    at = _skip(text, at)
    if text[at : at + 1] == ",":
        return at + 1
    if text[at : at + 1] == closer:
        return at
    raise Unreadable(_unexpected(text, at, f"`,` or `{closer}`"))


def _bare(text: str, at: int) -> tuple[Any, int, str]:
    """What stands without quotes: a number or a word of JSON or Python, else the text itself."""
    end = at
    while end < len(text) and text[end] not in ",)]}":
        end = _closing(text, end) + 1 if text[end] in _CLOSERS else end + 1
    said = text[at:end].strip()
    if not said:
        raise Unreadable(_unexpected(text, end, "a value"))
    if said.lower() in _WORDS:
        return _WORDS[said.lower()], end, said
    if _NUMBER.fullmatch(said):
        return _number(said), end, said
    return said, end, said


def _number(said: str) -> Any:
    try:
        return int(said)
    except ValueError:  # a fraction, or more digits than Python reads
        value = float(said)
        return said if value in (float("inf"), float("-inf")) else value


def _closing(text: str, at: int) -> int:
    """Where the bracket at `at` is closed. Raises `Unreadable`."""
    wanted = [_CLOSERS[text[at]]]
    for end in range(at + 1, len(text)):
        character = text[end]
        if character in _CLOSERS:
            wanted.append(_CLOSERS[character])
        elif character == wanted[-1]:
            wanted.pop()
            if not wanted:
                return end
    raise Unreadable(f"The `{text[at]}` before {text[at + 1 : at + 21]!r} is never closed.")


def _is_delimited(text: str, at: int) -> bool:
    return text[_skip(text, at) :][:1] in ("", ",", ")", "]", "}", ":")


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at


def _unexpected(text: str, at: int, wanted: str) -> str:
    before, found = text[max(0, at - 20) : at], text[at : at + 10]
    where = f"after {before!r}" if before else "at the start"
    return f"Expected {wanted} {where}, found {found!r}." if found else f"Expected {wanted} {where}, found nothing."
