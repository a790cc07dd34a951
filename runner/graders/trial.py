"""`[[graders.x.tests]]`: golden cases of a grader, checked without a policy."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from runner.graders.grader import Grader, GraderContext, Judge, Score, finite
from runner.graders.python import user_frame
from runner.records.failure import RolloutError
from runner.records.message import Message

if TYPE_CHECKING:
    from runner.sandboxes.handle import FreshSandbox

_EMPTY: Mapping[str, Any] = MappingProxyType({})
_NEAR = 1e-9


@dataclass(frozen=True, slots=True)
class GraderTrial:
    """Grade `output`, or the conversation `messages`, and expect a score.

    `expect` is a number, or its least and greatest value, None for no bound. Give exactly one of `output` and
    `messages`: ValueError otherwise.
    """

    expect: float | tuple[float | None, float | None]
    output: str | None = None
    messages: Sequence[Message] | None = None
    label: str | None = None
    row: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)
    stop_reason: str = "final_answer"

    def __post_init__(self) -> None:
        if (self.output is None) == (self.messages is None):
            raise ValueError("a grader's test has exactly one of output and messages")

    def context(
        self,
        roles: Mapping[str, Judge] = _EMPTY,
        resources: Mapping[str, Any] = _EMPTY,
        fresh: FreshSandbox | None = None,
    ) -> GraderContext:
        """What the grader is shown."""
        messages = [{"role": "assistant", "content": self.output}] if self.messages is None else list(self.messages)
        return GraderContext(
            messages=messages,
            label=self.label,
            row=self.row,
            stop_reason=self.stop_reason,
            roles=roles,
            resources=resources,
            fresh=fresh,
        )


@dataclass(frozen=True, slots=True)
class TrialResult:
    """`message` says what was expected and found when it did not pass; `score` is None when there was none."""

    passed: bool
    message: str
    score: Score | None = None


async def try_grader(
    grader: Grader,
    trial: GraderTrial,
    *,
    roles: Mapping[str, Judge] = _EMPTY,
    resources: Mapping[str, Any] = _EMPTY,
    timeout: float = 60.0,
    fresh: FreshSandbox | None = None,
) -> TrialResult:
    """Run one trial within `timeout` seconds. A grader that fails, fails the trial; raises only cancellation."""
    ctx = trial.context(roles, resources, fresh)
    try:
        async with asyncio.timeout(timeout):
            score = _as_score(await grader.grade(ctx), ctx)
    except TimeoutError:
        return TrialResult(False, f"the grader did not answer within {timeout:g} s")
    except RolloutError as error:
        where = f" ({error.where})" if error.where else ""
        return TrialResult(False, f"the grader could not speak: {error}{where}")
    except (Exception, SystemExit) as error:
        where = f" ({user_frame(error)})" if user_frame(error) else ""
        return TrialResult(False, f"the grader raised {type(error).__name__}: {error}{where}")
    return _compared(trial.expect, score)


def _as_score(given: Score | float | None, ctx: GraderContext) -> Score:
    given = ctx.sample.reward if given is None else given
    if given is None:
        raise ValueError("it gave no score")
    score = given if isinstance(given, Score) else Score(finite(given))
    finite(score.value)
    return score


def _compared(expect: float | tuple[float | None, float | None], score: Score) -> TrialResult:
    low, high = expect if isinstance(expect, tuple) else (expect, expect)
    above = low is None or score.value >= low - _NEAR
    below = high is None or score.value <= high + _NEAR
    if above and below:
        return TrialResult(True, "", score)
    reason = f": {score.reason}" if score.reason else ""
    return TrialResult(False, f"expected {_wanted(low, high)}, found {score.value:g}{reason}", score)


def _wanted(low: float | None, high: float | None) -> str:
    if low == high and low is not None:
        return f"a score of {low:g}"
    if high is None:
        return f"a score of at least {low:g}"
    return f"a score of at most {high:g}" if low is None else f"a score from {low:g} to {high:g}"
