"""A finished sample is shown to every grader; their scores make one reward, or a reason why there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import replace
from time import monotonic
from types import MappingProxyType

from runner.build.live import Bill, GraderPart, Live
from runner.graders.grader import GraderContext, Score, finite
from runner.graders.reward import combine
from runner.records.completion import Caller
from runner.records.event import Graded, Listener, ignore
from runner.records.failure import Failure, GraderError, GraderTimeout, RolloutError
from runner.records.limits import LIMIT_REASONS
from runner.records.rollout import AGENT_REWARD, Outcome, ScoreRecord, Status
from runner.records.rollout_sample import MAIN
from runner.runtime.alone import DeadlinePassed, SelfCancelled, alone
from runner.runtime.boundary import Attributed, boundary, failure_of
from runner.runtime.resources import open_resources
from runner.runtime.sandboxes import fresh_sandboxes

_GRADER = boundary("grader", "grader_error")
REMOVED = "removed"
"""The stop reason of a rollout that a grader took out: it is not counted, and nobody trains on it."""
_NOTHING: Mapping[str, ScoreRecord] = MappingProxyType({})


async def grade(
    live: Live,
    outcome: Outcome,
    resources: Mapping[str, object],
    listen: Listener = ignore,
    known: Mapping[str, ScoreRecord] = _NOTHING,
) -> Outcome:
    """The outcome with its grades: every grader is asked at the same time, each within its own deadline.

    `outcome` is what the agent left, with `ended` set; the result is "scored" or "ungraded". `known` are scores that
    stand: their graders are not asked. Never raises, except cancellation.
    """
    started = monotonic()
    parts = [part for part in live.plan.graders if part.name not in known]
    bills = [Bill() for _ in parts]
    asked = [
        _ask(part, _context(live, outcome, resources, bill), bill) for part, bill in zip(parts, bills, strict=True)
    ]
    records = [await asked[0]] if len(asked) == 1 else await asyncio.gather(*asked)
    given = {**known, **{part.name: record for part, record in zip(parts, records, strict=True)}}
    scores = {part.name: given[part.name] for part in live.plan.graders}
    if listen is not ignore:
        for name, record in scores.items():
            listen(Graded(outcome.request.rollout_id, monotonic(), name, record.value, record.reason, record.seconds))
    costs = [cost for cost in (outcome.cost, *(bill.cost for bill in bills)) if cost is not None]
    timing = _timed(outcome.timing, monotonic() - started)
    return _judged(live, outcome, scores, sum(costs) if costs else None, timing)


async def grade_within(
    live: Live,
    outcome: Outcome,
    resources: Mapping[str, object],
    seconds: float | None,
    listen: Listener = ignore,
    known: Mapping[str, ScoreRecord] = _NOTHING,
) -> Outcome:
    """`grade`, with `seconds` for all graders together; without an end in time nothing they said counts."""
    if seconds is None:
        return await grade(live, outcome, resources, listen, known)
    started = monotonic()
    try:
        return await alone(grade(live, outcome, resources, listen, known), seconds)
    except DeadlinePassed as passed:
        failure = Failure("grader", "grader_timeout", f"grader exceeded its {seconds:g}s deadline{passed.told}")
    except SelfCancelled:
        failure = Failure("grader", "grader_error", "grading cancelled its own task, nobody cancelled the rollout")
    timing = _timed(outcome.timing, monotonic() - started)
    return replace(outcome, status="ungraded", stop_reason=failure.kind, failure=failure, timing=timing)


def _timed(timing: Mapping[str, float], seconds: float) -> dict[str, float]:
    agent = timing.get("total", 0.0) - timing.get("grade", 0.0)
    return {**timing, "grade": round(seconds, 6), "total": round(agent + seconds, 6)}


async def grade_outcome(live: Live, outcome: Outcome, keep: Collection[str] = ()) -> Outcome:
    """Grade a recorded outcome again; only rubrics call a model.

    Graders named in `keep` are not asked again where they gave a score. Failed and cancelled outcomes come back as they
    are: there is nothing to grade.
    """
    if outcome.status in ("failed", "cancelled"):
        return outcome
    ended = outcome.ended or outcome.stop_reason
    bare = replace(outcome, ended=ended, reward=None, scores={}, failure=None)
    settled = settle_limit(live, bare)
    if settled is not None:
        return settled
    seconds = live.plan.limits.override(outcome.request.limits).grade_time
    try:
        async with open_resources(live, ignore, outcome.request.rollout_id) as resources:
            known = {name: score for name, score in outcome.scores.items() if name in keep and score.value is not None}
            return await grade_within(live, bare, resources, seconds, known=known)
    except (RolloutError, Attributed) as error:
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
        output=outcome.sample.agent_answer,
        sample_id=str(outcome.sample.info.get("sample_id") or outcome.sample.sample_id or MAIN),
        info=outcome.sample.info,
        fresh=fresh_sandboxes(live, caller),
    )


async def _ask(part: GraderPart, ctx: GraderContext, bill: Bill) -> ScoreRecord:
    started = monotonic()
    try:
        score = await _score(part, ctx)
        removed = ctx.sample.remove_sample
        if bill.unanswered is not None:
            raise bill.unanswered  # swallowed by the grader: what it made up instead is no score
    except Exception as error:
        failure = failure_of(error, "grader", "grader_error")
        return ScoreRecord(None, failure.message, failure, seconds=monotonic() - started)
    seconds = monotonic() - started
    if score is None:
        return ScoreRecord(None, "the grader removed the sample", seconds=seconds, removed=True)
    return ScoreRecord(score.value, score.reason, details=score.details, seconds=seconds, removed=removed)


async def _score(part: GraderPart, ctx: GraderContext) -> Score | None:
    """The grader's score; None from one that removed the sample and gave it no reward."""
    if part.timeout is None:
        return await _grade(part, ctx)
    try:
        return await alone(_grade(part, ctx), part.timeout)
    except DeadlinePassed as passed:
        raise GraderTimeout(f"grader {part.name!r} did not answer within {part.timeout:g} s{passed.told}") from None
    except SelfCancelled:
        raise GraderError(f"grader {part.name!r} cancelled its own task: to give up, raise an error") from None


async def _grade(part: GraderPart, ctx: GraderContext) -> Score | None:
    with _GRADER:
        return _as_score(part.name, await part.grader.grade(ctx), ctx)


def _as_score(name: str, given: Score | float | None, ctx: GraderContext) -> Score | None:
    if given is None:
        given = ctx.sample.reward
    if given is None and ctx.sample.remove_sample:
        return None
    if given is None:
        raise GraderError(
            f"grader {name!r} gave no score: return a number, or call `ctx.set_reward(...)`", kind="grader_silent"
        )
    try:
        if not isinstance(given, Score):
            return Score(finite(given))
        value = finite(given.value)
        return given if type(given.value) is float else replace(given, value=value)
    except ValueError as error:
        raise GraderError(f"grader {name!r}: {error}", kind="grader_bad_score") from error


def _judged(
    live: Live, outcome: Outcome, scores: Mapping[str, ScoreRecord], cost: float | None, timing: Mapping[str, float]
) -> Outcome:
    values = {name: record.value for name, record in scores.items()}
    own = outcome.sample.agent_reward
    if own is not None and not live.plan.graders:
        values = {AGENT_REWARD: own}
    made = combine(values, live.plan.reward, live.plan.required)
    removed = any(record.removed for record in scores.values())
    failed = any(scores[name].failure is not None for name in made.missing if name in scores)
    failure = None if made.reward is not None or (removed and not failed) else _why_none(scores, made.missing)
    status: Status = "scored" if failure is None and not removed else "ungraded"
    return Outcome(
        outcome.request,
        status,
        failure.kind if failure is not None else REMOVED if removed else outcome.ended,
        None if removed else made.reward,
        scores,
        failure,
        outcome.sample,
        outcome.usage,
        cost,
        timing,
        outcome.ended,
    )


def _why_none(scores: Mapping[str, ScoreRecord], missing: list[str]) -> Failure:
    failures = [scores[name].failure for name in missing if name in scores]
    first = next((failure for failure in failures if failure is not None), None)
    said = (
        "no grader gave a score that counts towards a reward: add `[graders.NAME]`, or let the agent return a `reward`"
    )
    return first or Failure("config", "no_grader", said)
