"""`[[tests]]`: a rollout of the file with a scripted model, and what must come of it.

A trial goes the way of every rollout: the agent, its tools, its limits and its graders are the real ones.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from runner.build.live import Live
from runner.build.tests import ScriptedTest
from runner.config.tests import RolloutExpect
from runner.datasets.dataset import DatasetError, Row
from runner.graders.grader import GraderContext
from runner.graders.trajectory import ExpectedCall, TrajectoryGrader
from runner.records.message import Message, last_answer
from runner.records.rollout import Outcome, RolloutRequest
from runner.runtime.rollout import run_rollout

_NEAR = 1e-9
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class TrialResult:
    """`message` says what was expected and found when it did not pass; `outcome` is None when nothing was played."""

    passed: bool
    message: str
    outcome: Outcome | None
    seconds: float


async def try_rollout(live: Live, test: ScriptedTest) -> TrialResult:
    """Play one test. Raises only cancellation."""
    started = perf_counter()
    try:
        request = _request(live, test)
    except DatasetError as error:
        return TrialResult(False, str(error), None, perf_counter() - started)
    outcome = await run_rollout(live.answered_by(test.make_model()), request)
    wrong = await _mismatches(test.section.expect, outcome)
    return TrialResult(not wrong, "; ".join(wrong), outcome, perf_counter() - started)


def _request(live: Live, test: ScriptedTest) -> RolloutRequest:
    """The rollout that a test asks for. Raises `DatasetError`, naming the test or the row."""
    section, plan = test.section, live.plan
    where = f"test {test.name}"
    row = _of_dataset(live, section.row) if isinstance(section.row, int) else Row(0, where, section.row, "")
    data: dict[str, Any] = dict(row.data)
    if section.messages is not None:
        data["messages"] = [dict(message) for message in section.messages]
    prompts = plan.prompts
    if section.label is not None:
        data["ground_truth"] = section.label
        prompts = replace(prompts, label=None)
    prompt, label = prompts.render(replace(row, data=data), where)
    return RolloutRequest(
        rollout_id=f"{plan.name}/test/{test.name}",
        prompt=prompt,
        row=data if section.label is not None else row.data,
        row_index=row.index,
        row_id=row.id,
        attempt=section.attempt,
        label=label,
    )


def _of_dataset(live: Live, index: int) -> Row:
    dataset = live.plan.dataset
    assert dataset is not None  # a check of the file has seen to that
    for row in dataset.rows():
        if row.index == index:
            return row
    raise DatasetError(f"`{dataset.path.name}` has no row {index} among those that `[dataset]` selects")


async def _mismatches(expect: RolloutExpect, outcome: Outcome) -> list[str]:
    """What is not as expected, a sentence each."""
    wrong = list(_of_outcome(expect, outcome))
    if expect.tool_calls is not None:
        wanted = [ExpectedCall(call.tool, call.args) for call in expect.tool_calls]
        spans = outcome.sample.tool_spans
        ctx = GraderContext(messages=_after_prompt(outcome), row=outcome.request.row, tool_spans=spans)
        score = await TrajectoryGrader(wanted, mode="exact").grade(ctx)
        wrong += [] if score.value == 1.0 else [score.reason]
    said = outcome.sample.agent_answer
    answer = last_answer(outcome.sample.messages) if said is None else said
    if expect.contains is not None and expect.contains not in answer:
        wrong.append(f"expected the answer to contain {_json(expect.contains)}, found {_json(answer)}")
    if expect.matches is not None and not re.search(expect.matches, answer):
        wrong.append(f"expected the answer to match {_json(expect.matches)}, found {_json(answer)}")
    return wrong


def _after_prompt(outcome: Outcome) -> Sequence[Message]:
    """The messages of the rollout itself: a prompt may hold calls of its own, as examples."""
    messages, prompt = outcome.sample.messages, outcome.request.prompt
    return messages[len(prompt) :] if messages[: len(prompt)] == prompt else messages


def _of_outcome(expect: RolloutExpect, outcome: Outcome) -> Iterator[str]:
    failure = outcome.failure
    why = f" ({failure.boundary}/{failure.kind}: {failure.message})" if failure is not None else ""
    if expect.stop_reason is not None and expect.stop_reason not in (outcome.stop_reason, outcome.ended):
        yield f"expected the stop reason {_json(expect.stop_reason)}, found {_json(outcome.stop_reason)}{why}"
    elif expect.stop_reason is None and outcome.status == "failed":
        yield f"the rollout failed{why}"
    if expect.reward is not None:
        low, high = expect.reward.min, expect.reward.max
        if outcome.reward is None:
            yield f"expected {_wanted(low, high)}, found none{why}"
        elif not (low is None or outcome.reward >= low - _NEAR) or not (high is None or outcome.reward <= high + _NEAR):
            yield f"expected {_wanted(low, high)}, found {outcome.reward:g}{_scores(outcome)}"


def _scores(outcome: Outcome) -> str:
    said: Mapping[str, Any] = outcome.scores
    words = [f"{name} {score.value:g}" + (f", {score.reason}" if score.reason else "")
             for name, score in said.items() if score.value is not None]  # fmt: skip
    return f" ({'; '.join(words)})" if words else ""


def _wanted(low: float | None, high: float | None) -> str:
    if low == high and low is not None:
        return f"a reward of {low:g}"
    if high is None:
        return f"a reward of at least {low:g}"
    return f"a reward of at most {high:g}" if low is None else f"a reward from {low:g} to {high:g}"


def _json(value: str) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
