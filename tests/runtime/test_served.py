"""What only a controller asks of the engine: time that began earlier, a deadline for grading, no grading at all."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pytest

from runner.build.plan import Plan
from runner.datasets.dataset import DatasetError
from runner.records.event import AgentEnded, Event, Graded
from runner.records.rollout import Outcome
from runner.runtime.grading import grade_outcome
from runner.runtime.rollout import run_rollout

ASKED = ({"role": "user", "content": "2+2?"},)


def play(
    plan: Plan, *, waited: float = 0.0, graded: bool = True, events: list[Event] | None = None, **asked: Any
) -> Outcome:
    async def main() -> Outcome:
        async with plan.open() as live:
            request = plan.served_request("r", ASKED, {}, "4", **asked)
            listen = (lambda event: None) if events is None else events.append
            return await run_rollout(live, request, listen, started=time.monotonic() - waited, graded=graded)

    return asyncio.run(main())


def test_time_runs_from_when_it_was_asked_for(project: Any) -> None:
    outcome = play(project.build(), waited=2.0, limits={"time": 1.5})
    assert outcome.status == "failed" and outcome.stop_reason == "rollout_timeout"
    assert outcome.timing["queued"] == pytest.approx(2.0, abs=0.2)
    assert play(project.build(), waited=1.0, limits={"time": 30.0}).status == "scored"


def test_the_agents_end_is_heard_before_any_grade(project: Any) -> None:
    events: list[Event] = []
    play(project.build(), events=events)
    ended = next(place for place, event in enumerate(events) if isinstance(event, AgentEnded))
    graded = next(place for place, event in enumerate(events) if isinstance(event, Graded))
    left = events[ended].left  # type: ignore[attr-defined]
    assert ended < graded
    assert (left.status, left.ended, left.reward, left.failure) == ("ungraded", "final_answer", None, None)
    assert left.sample.messages[-1]["content"] == "4"


def test_nobody_wants_a_grade(project: Any) -> None:
    events: list[Event] = []
    outcome = play(project.build(), graded=False, events=events)
    assert (outcome.status, outcome.stop_reason, outcome.reward, outcome.failure) == (
        "ungraded",
        "final_answer",
        None,
        None,
    )
    assert not [event for event in events if isinstance(event, Graded)]


SLOW = """
    import asyncio

    async def slow(ctx):
        await asyncio.sleep(30)

    def quick(messages, ground_truth, metadata):
        return 1.0
"""
GRADERS = """
[graders.quick]
kind = "python"
call = "./code.py:quick"
[graders.slow]
kind = "python"
call = "./code.py:slow"
"""


def test_the_deadline_of_grading_is_for_all_graders_together(project: Any) -> None:
    project.write("code.py", SLOW)
    plan = project.build(GRADERS)
    started = time.monotonic()
    outcome = play(plan, limits={"grade_time": 0.1})
    assert time.monotonic() - started < 5
    assert (outcome.status, outcome.stop_reason, outcome.reward) == ("ungraded", "grader_timeout", None)
    assert outcome.failure is not None and outcome.failure.message == "grader exceeded its 0.1s deadline"

    async def again() -> Outcome:
        async with plan.open() as live:
            return await grade_outcome(live, outcome)

    assert asyncio.run(again()).stop_reason == "grader_timeout"


@pytest.mark.parametrize(
    ("messages", "metadata", "label", "prompt", "reference"),
    [
        (ASKED, {"tier": "2"}, "4", ["tier 2", "2+2?"], "4"),
        (ASKED, {"tier": "2", "ground_truth": "5"}, None, ["tier 2", "2+2?"], "5"),
        (ASKED, {"tier": "2", "ground_truth": "5"}, "4", ["tier 2", "2+2?"], "4"),
        (({"role": "system", "content": "mine"}, *ASKED), {}, None, ["mine", "2+2?"], None),
        ((), {"tier": "3"}, None, ["tier 3"], None),
    ],
)
def test_the_request_of_a_controller(
    project: Any,
    messages: Any,
    metadata: Mapping[str, Any],
    label: str | None,
    prompt: list[str],
    reference: str | None,
) -> None:
    plan = project.build(workflow='system = "tier {{ row.tier }}"\nuser = "never {{ row.nowhere }}"')
    request = plan.served_request("a/b", messages, metadata, label)
    assert [message["content"] for message in request.prompt] == prompt
    assert request.label == reference and request.rollout_id == "a/b"


def test_metadata_that_the_file_needs_and_the_request_has_not(project: Any) -> None:
    plan = project.build(workflow='system = "tier {{ row.tier }}"')
    with pytest.raises(DatasetError, match=r"the request's metadata: the prompt cannot be made: .*tier"):
        plan.served_request("r", ASKED, {})
