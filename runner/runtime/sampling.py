"""How one call is sampled: the file's `[sampling]`, and over it a controller's and a workflow's own values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any

from runner.records.completion import Sampling
from runner.records.failure import WorkflowError

_KEYS = frozenset(field.name for field in fields(Sampling))


def merge_sampling(base: Sampling, values: Mapping[str, Any]) -> Sampling:
    """`base` with the given keys in place; keys that are not of `[sampling]` go to `extra`, untouched.

    A value of None means: not sent. Raises `WorkflowError` (kind "bad_sampling") for a value of the wrong kind.
    """
    if not values:
        return base
    known = {key: _checked(key, value) for key, value in values.items() if key in _KEYS}
    extra = {**known.pop("extra", {}), **{key: value for key, value in values.items() if key not in _KEYS}}
    return replace(base, **known, extra={**base.extra, **extra} if extra else base.extra)


def _checked(key: str, value: Any) -> Any:
    if key == "stop":
        return _texts(value)
    if key == "extra":
        if not isinstance(value, Mapping):
            raise _wrong(key, "a table", value)
        return value
    if value is not None and not _FITS[key](value):
        raise _wrong(key, "a whole number" if key in ("max_tokens", "seed") else "a number", value)
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
        return tuple(value)
    raise _wrong("stop", "a text or a list of texts", value)


def _wrong(key: str, wanted: str, value: Any) -> WorkflowError:
    return WorkflowError(f"sampling `{key}` must be {wanted}, found {value!r:.60}", kind="bad_sampling")


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0


_FITS: Mapping[str, Callable[[Any], bool]] = {
    "temperature": _number,
    "top_p": _number,
    "max_tokens": _whole,
    "seed": _whole,
}
