"""Any value as strict JSON: no NaN, no half of a surrogate pair, no object of the user's, and never an exception.

What JSON cannot hold is either left out (numbers and notes about a sample) or replaced by a marker (messages, whose
places count). Either way it is listed once, so that nobody wonders where it went.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from json.encoder import c_make_encoder, encode_basestring  # type: ignore[attr-defined]
from typing import Any

_SURROGATES = re.compile("[\ud800-\udfff]")
_MAX_DEPTH = 100
_MAX_LISTED = 20
_MAX_BITS = 4096
"""Whole numbers beyond this are longer than other readers, and Python itself, take as text."""
_LEFT_OUT: Any = object()
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_pieces: Callable[[Any, Any], Iterable[str]] = (
    c_make_encoder(None, _ENCODER.default, encode_basestring, None, ":", ",", False, False, False)
    if c_make_encoder is not None
    else _ENCODER.iterencode
)
"""What `_ENCODER.encode` makes anew for each value: most values take longer to prepare for than to write. It does not
look for what holds itself, which ends in a RecursionError."""
UNFIT = (ValueError, TypeError, RecursionError)
"""What `strict` raises for what JSON cannot hold."""


def encode(value: Any) -> bytes:
    """Compact JSON in UTF-8. What is unfit is replaced by a marker."""
    try:
        return strict(value)
    except UNFIT:
        return strict(Mender().mend(value))


def strict(value: Any) -> bytes:
    """Compact JSON in UTF-8. Raises ValueError, TypeError or RecursionError for what JSON cannot hold."""
    return "".join(_pieces(value, 0)).encode()


def is_strict(value: Any) -> bool:
    """Whether JSON can hold the value as it is."""
    try:
        strict(value)
    except UNFIT:
        return False
    return True


def scrubbed(text: str) -> str:
    """The text with each unpaired surrogate as U+FFFD, so that UTF-8 can carry it."""
    return text if text.isascii() else _SURROGATES.sub("\ufffd", str(text))


class Mender:
    """Copies values into what JSON can hold. `lost` lists what that cost: `metrics.loss (nan)`.

    With `drop` an unfit member is left out of its object or list; otherwise a marker stands in its place.
    """

    def __init__(self, *, drop: bool = False) -> None:
        self._drop = drop
        self._within: set[int] = set()
        self._more = 0
        self._lost: list[str] = []

    @property
    def lost(self) -> list[str]:
        """What was left out or replaced, each place once; at most a few, then how many more."""
        return [*self._lost, f"and {self._more} more"] if self._more else list(self._lost)

    def mend(self, value: Any, where: str = "") -> Any:
        """A copy of `value` that JSON can hold; `where` names it in `lost`."""
        mended = self._mend(value, where, 0)
        return None if mended is _LEFT_OUT else mended

    def members(self, value: Any, where: str) -> dict[str, Any]:
        """The same for what must be an object: anything else makes an empty one."""
        mended = self.mend(value, where)
        return mended if isinstance(mended, dict) else {}

    def _mend(self, value: Any, where: str, depth: int) -> Any:
        if isinstance(value, str):
            return self._text(value, where)
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int | float):
            return self._number(value, where)
        if isinstance(value, Mapping) or _is_list(value):
            return self._inside(value, where, depth)
        number = _as_number(value)
        return self._unfit(type(value).__name__, where) if number is None else self._number(number, where)

    def _inside(self, value: Any, where: str, depth: int) -> Any:
        if depth >= _MAX_DEPTH or id(value) in self._within:
            return self._unfit("nested too deeply", where)
        self._within.add(id(value))
        try:
            if isinstance(value, Mapping):
                return self._object(value, where, depth)
            kept = (self._mend(each, f"{where}[{place}]", depth + 1) for place, each in enumerate(value))
            return [each for each in kept if each is not _LEFT_OUT]
        except Exception as error:  # a container of the user's that cannot be read
            return self._unfit(f"reading it raised {type(error).__name__}", where)
        finally:
            self._within.discard(id(value))

    def _object(self, value: Mapping[Any, Any], where: str, depth: int) -> dict[str, Any]:
        kept: dict[str, Any] = {}
        for key, inner in value.items():
            name = _as_key(key)
            if name is None:
                self._note(f"a {type(key).__name__} as a key", where)
                continue
            mended = self._mend(inner, f"{where}.{name}" if where else name, depth + 1)
            if mended is not _LEFT_OUT:
                kept[name] = mended
        return kept

    def _number(self, value: int | float, where: str) -> Any:
        if isinstance(value, int):
            return int(value) if value.bit_length() <= _MAX_BITS else self._unfit("too large a number", where)
        return float(value) if math.isfinite(value) else self._unfit(str(float(value)), where)

    def _text(self, text: str, where: str) -> str:
        clean = scrubbed(text)
        if not self._drop and clean != text:
            self._note("half a surrogate pair", where)
        return clean

    def _unfit(self, what: str, where: str) -> Any:
        self._note(what, where)
        return _LEFT_OUT if self._drop else f"[left out: {scrubbed(what)}]"

    def _note(self, what: str, where: str) -> None:
        if len(self._lost) < _MAX_LISTED:
            self._lost.append(scrubbed(f"{where[:200]} ({what[:100]})".strip()))
        else:
            self._more += 1


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence | AbstractSet) and not isinstance(value, bytes | bytearray | memoryview)


def _as_key(key: Any) -> str | None:
    if isinstance(key, str):
        return scrubbed(key)
    if isinstance(key, bool) or not isinstance(key, int | float):
        return None
    return None if isinstance(key, int) and key.bit_length() > _MAX_BITS else str(key)


def _as_number(value: Any) -> int | float | None:
    """The number in what is like one (numpy's, Decimal, Fraction); None for anything else."""
    try:
        if hasattr(type(value), "__index__"):
            return int(value.__index__())
        if hasattr(type(value), "__float__"):
            return float(value)
    except Exception:  # the user's own type: whatever it raises, it is no number
        return None
    return None
