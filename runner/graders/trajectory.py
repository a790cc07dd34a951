"""`trajectory`: which tools the rollout called, with what, and in which order."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from runner.graders.grader import Grader, GraderContext, GraderMisfit, Score
from runner.graders.labels import require_label
from runner.graders.number import parse_number
from runner.records.message import ToolCall, tool_calls_of
from runner.records.quick import quick

_SHOWN = 60
"""Characters of an argument that a reason shows."""


@quick
class ExpectedCall:
    """A call of `tool` whose arguments include `args`, compared deeply; numbers by value.

    A callable anywhere in `args` is called with the context. Text that it gives also equals the number it writes: a
    template can give nothing but text.
    """

    tool: str
    args: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class _Made:
    """A call that was made."""

    call: ToolCall

    @cached_property
    def arguments(self) -> dict[str, Any] | None:
        """None when the model wrote no JSON object: such a call meets no expectation on arguments."""
        try:
            found = json.loads(self.call.arguments or "{}")
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def meets(self, tool: str, args: Mapping[str, Any]) -> bool:
        if self.call.name != tool:
            return False
        return not args or (self.arguments is not None and _includes(self.arguments, args))


class TrajectoryGrader(Grader):
    """How well the tool calls of the messages meet `expect`.

    `exact`: these calls and no others, 1 or 0. `in_order` and `any_order`: these among others, the share of them that
    was found. More than `max_calls` calls are 0. Raises `GraderMisfit` when every rollout would pass.
    """

    range = (0.0, 1.0)
    needs_label = False

    def __init__(
        self,
        expect: Sequence[ExpectedCall] = (),
        *,
        mode: Literal["exact", "in_order", "any_order"] = "in_order",
        max_calls: int | None = None,
        needs_label: bool = False,
    ) -> None:
        super().__init__()
        if not expect and mode != "exact" and max_calls is None:
            raise GraderMisfit(
                f"{mode} expects no calls and sets no max_calls: every rollout would pass; add one of them"
            )
        if max_calls is not None and max_calls < len(expect):
            calls = "the call that is expected" if len(expect) == 1 else f"the {len(expect)} calls that are expected"
            raise GraderMisfit(f"max_calls = {max_calls} forbids {calls}; {len(expect)} at least", key="max_calls")
        self._expect = tuple(expect)
        self._mode = mode
        self._max_calls = max_calls
        self.needs_label = needs_label

    async def grade(self, ctx: GraderContext) -> Score:
        if self.needs_label:
            require_label(ctx)
        made = [_Made(call) for call in _calls_of(ctx)]
        if self._max_calls is not None and len(made) > self._max_calls:
            return Score(0.0, f"{len(made)} tool calls, at most {self._max_calls} allowed")
        wanted = [(each.tool, _filled(each.args or {}, ctx)) for each in self._expect]
        meets = [[call.meets(tool, args) for call in made] for tool, args in wanted]
        if self._mode == "exact":
            return self._exact(made, meets)
        met = _in_order(meets) if self._mode == "in_order" else _any_order(meets)
        missing = [ExpectedCall(*each) for index, each in enumerate(wanted) if index not in met]
        if not missing:
            return Score(1.0, f"all {len(wanted)} expected calls were made" if wanted else f"{len(made)} tool calls")
        shown = ", ".join(_named(each) for each in missing)
        found = len(wanted) - len(missing)
        return Score(found / len(wanted), f"{found} of {len(wanted)} expected calls were made; missing: {shown}")

    def _exact(self, made: list[_Made], meets: list[list[bool]]) -> Score:
        if len(made) != len(self._expect):
            calls = ", ".join(each.call.name for each in made[:20]) or "none"
            return Score(0.0, f"expected exactly {len(self._expect)} tool calls, found {len(made)}: {calls}")
        for index, (call, each) in enumerate(zip(made, self._expect, strict=True)):
            if not meets[index][index]:
                found = f"{call.call.name}({call.call.arguments[:120]})"
                return Score(0.0, f"call {index + 1} must be {_named(each)}, found {found}")
        return Score(1.0, f"exactly the {len(made)} expected calls")


def _calls_of(ctx: GraderContext) -> list[ToolCall]:
    """The calls of the answers; those that were written as text are told by their spans alone."""
    asked = [call for message in ctx.messages for call in tool_calls_of(message) if message.get("role") == "assistant"]
    written = [span for span in ctx.tool_spans if "arguments" in span]
    return asked + [ToolCall(span["tool_call_id"], span["name"], span["arguments"], True) for span in written]


def _named(expected: ExpectedCall) -> str:
    if not expected.args:
        return expected.tool
    shown = (f"{key}={_short(value)}" for key, value in expected.args.items())
    return f"{expected.tool} with {', '.join(shown)}"


def _short(value: Any) -> str:
    text = "…" if callable(value) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


class _Rendered(str):
    """Text that a template gave, which may stand for a number."""


def _filled(value: Any, ctx: GraderContext) -> Any:
    if callable(value):
        given = value(ctx)
        return _Rendered(given) if isinstance(given, str) else given
    if isinstance(value, Mapping):
        return {key: _filled(each, ctx) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(each, ctx) for each in value]
    return value


def _includes(found: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(
            key in found and _includes(found[key], each) for key, each in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(_includes, found, wanted))
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted or (isinstance(wanted, _Rendered) and wanted.strip().lower() == str(found).lower())
    if isinstance(wanted, _Rendered) and isinstance(found, int | float):
        number = parse_number(wanted)
        return number is not None and number.unit is None and not number.percent and float(number.value) == found
    return bool(found == wanted)


def _in_order(meets: Sequence[Sequence[bool]]) -> set[int]:
    """The expectations of a longest common subsequence of what was expected and what was made."""
    calls = len(meets[0]) if meets else 0
    best = [[0] * (calls + 1) for _ in range(len(meets) + 1)]
    for row in range(len(meets) - 1, -1, -1):
        for column in range(calls - 1, -1, -1):
            skip = max(best[row + 1][column], best[row][column + 1])
            best[row][column] = max(skip, best[row + 1][column + 1] + 1) if meets[row][column] else skip
    met: set[int] = set()
    row = column = 0
    while row < len(meets) and column < calls:
        if meets[row][column] and best[row][column] == best[row + 1][column + 1] + 1:
            met.add(row)
            row, column = row + 1, column + 1
        elif best[row + 1][column] >= best[row][column + 1]:
            row += 1
        else:
            column += 1
    return met


def _any_order(meets: Sequence[Sequence[bool]]) -> set[int]:
    """The expectations of a largest matching, where each call meets at most one of them."""
    taken: dict[int, int] = {}

    def place(row: int, seen: set[int]) -> bool:
        for column, fits in enumerate(meets[row]):
            if fits and column not in seen:
                seen.add(column)
                if column not in taken or place(taken[column], seen):
                    taken[column] = row
                    return True
        return False

    for row in range(len(meets)):
        place(row, set())
    return set(taken.values())
