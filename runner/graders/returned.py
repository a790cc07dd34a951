"""What a user's grader returned, read as a score; whatever is not clearly one is a `GraderError`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

from runner.graders.grader import Score, finite
from runner.records.failure import GraderError

_VALUE_KEYS = ("score", "reward")


def score_of(returned: Any, reward: float | None, name: str) -> Score:
    """`returned` as a `Score`; None means `reward`, which the grader set on its context.

    Raises `GraderError`: kind "grader_silent" when there is neither, "grader_bad_score" for what is no finite number.
    """
    if returned is None and reward is None:
        raise GraderError(
            f"{name} forgot the reward: it returned None and set none; return a number, or call ctx.set_reward(...)",
            kind="grader_silent",
        )
    try:
        return _read(reward if returned is None else returned)
    except (ValueError, ArithmeticError) as error:
        raise GraderError(f"{name}: {error}", kind="grader_bad_score") from error


def _read(returned: Any) -> Score:
    if isinstance(returned, Score):
        return replace(returned, value=_number(returned.value), reason=str(returned.reason))
    if isinstance(returned, Mapping):
        return _read_table(returned)
    return Score(_number(returned))


def _read_table(table: Mapping[str, Any]) -> Score:
    keys = [key for key in _VALUE_KEYS if key in table]
    if len(keys) != 1:
        found = ", ".join(map(repr, table)) or "nothing"
        raise ValueError(f"a returned dict must have exactly one of 'score' and 'reward', found {found}")
    details = {str(key): value for key, value in table.items() if key not in (*_VALUE_KEYS, "reason", "details")}
    given = table.get("details")
    details |= given if isinstance(given, Mapping) else {}
    reason = table.get("reason")
    return Score(_number(table[keys[0]]), "" if reason is None else str(reason), json_safe(details))


def _number(value: Any) -> float:
    # Numbers of other libraries: numpy's scalars, one-element tensors, Fraction, Decimal.
    if not isinstance(value, int | float | str) and callable(getattr(value, "item", None)):
        value = value.item()
    return finite(float(value) if isinstance(value, Fraction | Decimal) else value)


def json_safe(details: Mapping[str, Any]) -> dict[str, Any]:
    """`details` with everything that is no JSON as its text."""
    from json import dumps, loads

    safe: dict[str, Any] = {}
    for key, value in details.items():
        try:
            safe[key] = loads(dumps(value, allow_nan=False))
        except (TypeError, ValueError, RecursionError):
            safe[key] = repr(value)[:500]
    return safe
