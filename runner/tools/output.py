"""From whatever a tool returned to the text that the model reads.

Text goes as it is, everything else as JSON. What JSON cannot hold is an `Unsayable`, never a `repr`: an address in
memory teaches a model nothing and makes two equal rollouts differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from json import JSONEncoder
from os import PathLike, fspath
from typing import Any

DEFAULT_MAX_OUTPUT = 100_000
"""Characters of a tool's output that reach the model when the file sets no `max_output`."""


class Unsayable(Exception):
    """A value that has no JSON form; the message names its type."""


def say(value: Any) -> str:
    """The text of a tool's return value.

    A string is itself, None is empty, UTF-8 bytes are decoded, a date, path or decimal is its text, all else is JSON.
    Raises `Unsayable`.
    """
    if isinstance(value, str):
        return str(value)
    if value is None:
        return ""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _decoded(bytes(value))
    if not isinstance(value, (dict, list, tuple, bool, int, float)):
        value = _plain(value)
    return value if isinstance(value, str) else _json(value)


def _decoded(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return f"[{len(value):,} bytes that are not UTF-8 text]"


def _json(value: Any) -> str:
    try:
        return _ENCODER.encode(value)
    except RecursionError:
        raise Unsayable("it is nested too deeply for JSON") from None
    except ValueError as error:
        if "Circular" in str(error):
            raise Unsayable("it contains itself, which JSON cannot hold") from None
        raise Unsayable("it holds NaN or an infinite number, which JSON cannot hold") from None
    except TypeError as error:
        # The one TypeError left is a key: values went through `_plain`.
        raise Unsayable(f"JSON cannot hold it: {error}") from None


def _plain(value: Any) -> Any:
    """One value in terms of JSON types; its parts may still need the same. Raises `Unsayable`."""
    if isinstance(value, Set):
        return _ordered(value)
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, PathLike):
        return fspath(value)
    as_list = getattr(value, "tolist", None)  # numpy scalars and arrays, torch tensors
    if callable(as_list) and not isinstance(value, type):
        return as_list()
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        return to_jsonable_python(value, inf_nan_mode="constants")
    except (PydanticSerializationError, ValueError, RecursionError):
        raise Unsayable(f"a value of type `{_name(type(value))}` has no JSON form") from None


def _ordered(values: Set[Any]) -> list[Any]:
    # Sets of strings iterate differently in every process: equal rollouts would read different text.
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=repr)


def _name(kind: type) -> str:
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


_ENCODER = JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)


def cap(text: str, limit: int) -> tuple[str, bool]:
    """`text` in at most `limit` characters, and whether it was cut.

    The middle goes: the start says what an output is and the end how it came out. The cut is said in the text; only
    when `limit` is too small for those words is the result longer than it, being those words alone.
    """
    if len(text) <= limit:
        return text, False
    room = max(0, limit - len(_cut(len(text))))
    tail = room // 2
    head = room - tail
    return text[:head] + _cut(len(text) - room) + (text[-tail:] if tail else ""), True


def _cut(characters: int) -> str:
    return f"\n[… {characters:,} characters cut …]\n"


def sendable(text: str) -> str:
    """`text` as UTF-8 can carry it: halves of a surrogate pair are joined, lone ones become U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
