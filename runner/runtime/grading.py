"""A finished sample is shown to every grader; their scores make one reward, or a reason why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from time import monotonic

from runner.build.live import Bill, GraderPart, Live
from runner.graders.grader import GraderContext, Score, finite
from runner.graders.reward import combine
from runner.records.completion import Caller
from runner.records.event import Graded, Listener, ignore
from runner.records.failure import Failure, GraderError, GraderTimeout
from runner.records.limits import LIMIT_REASONS
from runner.records.rollout import Outcome, ScoreRecord
from runner.runtime.boundary import Attributed, boundary, failure_of
from runner.runtime.resources import open_resources


async def grade(live: Live, outcome: Outcome, resources: Mapping[str, object], listen: Listener = ignore) -> Outcome:
    """The outcome with its grades: every grader is asked at the same time, each within its own deadline.

    `outcome` is what the agent left, with `ended` set; the result is "scored" or "ungraded". Never raises, except
    cancellation.
    """
    started, bill = monotonic(), Bill()
    parts = live.plan.graders
    contexts = [_context(live, outcome, resources, bill) for _ in parts]
    if len(parts) == 1:
        records = [await _ask(parts[0], contexts[0])]
    else:
        records = list(await asyncio.gather(*(_ask(part, ctx) for part, ctx in zip(parts, contexts, strict=True))))
    scores = {part.name: record for part, record in zip(parts, records, strict=True)}
    for name, record in scores.items():
        listen(Graded(outcome.request.rollout_id, monotonic(), name, record.value, record.reason, record.seconds))
    graded = _judge(live, outcome, scores)
    return replace(graded, cost=bill.added_to(outcome.cost), timing=_timed(outcome.timing, monotonic() - started))


def _timed(timing: Mapping[str, float], seconds: float) -> dict[str, float]:
    agent = timing.get("total", 0.0) - timing.get("grade", 0.0)
    return {**timing, "grade": round(seconds, 6), "total": round(agent + seconds, 6)}


async def grade_outcome(live: Live, outcome: Outcome) -> Outcome:
    """Grade a recorded outcome again; only rubrics call a model.

    Failed and cancelled outcomes come back as they are: there is nothing to grade.
    """
    if outcome.status in ("failed", "cancelled"):
        return outcome
    ended = outcome.ended or outcome.stop_reason
    bare = replace(outcome, ended=ended, reward=None, scores={}, failure=None)
    settled = settle_limit(live, bare)
    if settled is not None:
        return settled
    try:
        async with open_resources(live, ignore, outcome.request.rollout_id) as resources:
            return await grade(live, bare, resources)
    except (GraderError, Attributed) as error:
        failure = failure_of(error)
        return replace(bare, status="ungraded", stop_reason=failure.kind, failure=failure)


def settle_limit(live: Live, outcome: Outcome) -> Outcome | None:
    """The outcome of a rollout that ran into a limit whose worth `on_limit` fixes; None: let graders see it."""
    rule = live.plan.limits.on_limit
    if outcome.ended not in LIMIT_REASONS or rule == "score":
        return None
    if rule == "ungraded":
        return replace(outcome, status="ungraded", stop_reason=outcome.ended, reward=None)
    return replace(outcome, status="scored", stop_reason=outcome.ended, reward=float(rule))


def _context(live: Live, outcome: Outcome, resources: Mapping[str, object], bill: Bill) -> GraderContext:
    request = outcome.request
    caller = Caller(request.rollout_id, request.row, request.attempt)
    return GraderContext(
        messages=outcome.sample.messages,
        label=request.label,
        row=request.row,
        prompt=request.prompt,
        stop_reason=outcome.ended,
        tool_spans=outcome.sample.tool_spans,
        resources=resources,
        roles=live.judges(caller, bill),
        caller=caller,
    )


async def _ask(part: GraderPart, ctx: GraderContext) -> ScoreRecord:
    started = monotonic()
    try:
        score = await _score(part, ctx)
    except Exception as error:
        failure = failure_of(error, "grader", "grader_error")
        return ScoreRecord(None, failure.message, failure, seconds=monotonic() - started)
    return ScoreRecord(score.value, score.reason, details=score.details, seconds=monotonic() - started)


async def _score(part: GraderPart, ctx: GraderContext) -> Score:
    deadline = asyncio.timeout(part.timeout)
    try:
        async with deadline:
            with boundary("grader", "grader_error"):
                return _as_score(part.name, await part.grader.grade(ctx), ctx)
    except TimeoutError as error:
        raise GraderTimeout(f"grader {part.name!r} did not answer within {part.timeout:g} s") from error


def _as_score(name: str, given: Score | float | None, ctx: GraderContext) -> Score:
    if given is None:
        given = ctx.sample.reward
    if given is None:
        raise GraderError(
            f"grader {name!r} gave no score: return a number, or call `ctx.set_reward(...)`", kind="grader_silent"
        )
    try:
        score = given if isinstance(given, Score) else Score(finite(given))
        return replace(score, value=finite(score.value))
    except ValueError as error:
        raise GraderError(f"grader {name!r}: {error}", kind="grader_bad_score") from error


def _judge(live: Live, outcome: Outcome, scores: Mapping[str, ScoreRecord]) -> Outcome:
    made = combine({name: record.value for name, record in scores.items()}, live.plan.reward, live.plan.required)
    if made.reward is not None:
        return replace(outcome, status="scored", stop_reason=outcome.ended, reward=made.reward, scores=scores)
    failure = _why_none(scores, made.missing)
    return replace(outcome, status="ungraded", stop_reason=failure.kind, reward=None, scores=scores, failure=failure)


def _why_none(scores: Mapping[str, ScoreRecord], missing: list[str]) -> Failure:
    failures = [scores[name].failure for name in missing if name in scores]
    first = next((failure for failure in failures if failure is not None), None)
    return first or Failure("config", "no_grader", "no grader gave a score that counts towards a reward")
