"""Stepping through a rollout: what the guide chooses is what the agent sees and what is recorded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from runner.records.completion import Completion
from runner.records.failure import ContextOverflow, Failure, ModelUnavailable
from runner.records.rollout import Outcome
from runner.runtime.rollout import run_rollout
from runner.runtime.stepping import Request, Stepping
from runner.tools.toolbox import Answer


@dataclass
class Script:
    """A guide with its choices made beforehand; `told` is what it was shown."""

    edits: dict[int, str] = field(default_factory=dict)
    """By turn, what the last message of the request becomes."""
    again: int = 0
    """How often the first answer is asked for again; the first of all stands."""
    retries: int = 0
    """How many failures are tried again."""
    reruns: int = 0
    told: list[str] = field(default_factory=list)

    async def asks(self, request: Request) -> None:
        self.told.append(f"{request.turn}: {' '.join(str(message['content']) for message in request.messages)}")
        if request.turn in self.edits:
            request.messages[-1] = {**request.messages[-1], "content": self.edits[request.turn]}

    async def answered(self, request: Request, answers: Sequence[Completion]) -> Completion | None:
        self.told.append(f"{request.turn}? {answers[-1].message['content']}")
        if len(answers) <= self.again:
            return None
        self.again = 0
        return answers[0]

    async def used(self, answers: Sequence[Answer]) -> bool:
        self.told.append(" ".join(answer.result.status for answer in answers))
        self.reruns -= 1
        return self.reruns >= 0

    async def failed(self, failure: Failure, request: Request | None, again: bool) -> bool:
        self.told.append(f"{failure.kind}{'' if again else ', final'}")
        self.retries -= 1
        return self.retries >= 0

    def lifted(self, limit: str) -> None:
        self.told.append(f"lifted {limit}")


def step(project: Any, guide: Script, answers: Sequence[Any], toml: str = "", workflow: str = "") -> Outcome:
    async def main() -> Outcome:
        async with project.open(toml or '[graders.answer]\nkind = "contains"\n', *answers, workflow=workflow) as live:
            request = live.plan.request(project.row(), 0)
            return await run_rollout(live, request, stepping=Stepping(guide, time.monotonic))

    return asyncio.run(main())


def contents(outcome: Outcome) -> list[Any]:
    return [message["content"] for message in outcome.sample.messages]


def test_the_answer_that_was_chosen_is_the_only_one_recorded(project: Any) -> None:
    guide = Script(again=2)
    outcome = step(project, guide, [project.says("4 a"), project.says("4 b"), project.says("4 c")])
    assert guide.told == ["1: 2+2?", "1? 4 a", "1? 4 b", "1? 4 c"]
    assert contents(outcome) == ["2+2?", "4 a"]
    assert (len(outcome.sample.calls), outcome.usage.total_tokens, outcome.sample.metrics["turns"]) == (1, 15, 1)


def test_an_edit_lasts_whether_the_agent_keeps_its_messages_or_copies_them(project: Any) -> None:
    project.write("own.py", """
        async def copies(ctx):
            said = [dict(message) for message in ctx.prompt]
            first = await ctx.chat([dict(message) for message in said])
            said += [first.message, {"role": "user", "content": "sure?"}]
            await ctx.chat([dict(message) for message in said])

        async def keeps(ctx):
            first = await ctx.chat(ctx.prompt)
            said = [*ctx.prompt, first.message, {"role": "user", "content": "sure?"}]
            last = await ctx.chat(said)
            return [*said, last.message]
    """)  # fmt: skip
    for name in ("copies", "keeps"):
        guide = Script(edits={1: "3+1?"})
        outcome = step(project, guide, [project.says("4")], workflow=f'agent = "./own.py:{name}"')
        assert guide.told == ["1: 2+2?", "1? 4", "2: 3+1? 4 sure?", "2? 4"]
        assert contents(outcome) == ["3+1?", "4", "sure?", "4"]
        assert contents(replace(outcome, sample=replace(outcome.sample, messages=outcome.request.prompt))) == ["2+2?"]


@pytest.mark.parametrize("error", [ModelUnavailable("gone"), ContextOverflow("too long"), RuntimeError("a bug")])
def test_a_call_that_failed_is_tried_again_as_if_it_had_not(error: Exception, project: Any) -> None:
    guide = Script(retries=1)
    outcome = step(project, guide, [error, project.says("4")])
    assert (outcome.status, outcome.reward, outcome.stop_reason) == ("scored", 1.0, "final_answer")
    assert outcome.sample.metrics["turns"] == 1
    assert ["error" in call for call in outcome.sample.calls] == [True, False]


def test_without_another_try_it_ends_as_ever(project: Any) -> None:
    guide = Script()
    outcome = step(project, guide, [ModelUnavailable("gone")])
    assert (outcome.status, outcome.stop_reason, guide.told) == (
        "failed", "model_unavailable", ["1: 2+2?", "model_unavailable"],
    )  # fmt: skip


def test_a_failure_while_asking_again_keeps_the_answers_there_are(project: Any) -> None:
    guide = Script(again=1)
    answers = [project.says("4"), ModelUnavailable("gone"), project.says("5")]
    outcome = step(project, guide, answers)
    assert guide.told == ["1: 2+2?", "1? 4", "model_unavailable, final", "1? 4", "1? 5"]
    assert contents(outcome) == ["2+2?", "4"] and outcome.status == "scored"


TOOL = """
    [tools.add]
    call = "./tools.py:add"
    [graders.answer]
    kind = "contains"
"""


def test_tools_are_run_again_and_answer_once(project: Any) -> None:
    project.write("tools.py", """
        calls = []
        def add(a: int) -> int:
            "Add."
            calls.append(a)
            return len(calls) + 2
    """)  # fmt: skip
    guide = Script(reruns=1)
    outcome = step(project, guide, [project.says("", ("add", '{"a": 1}')), project.says("4")],
                   "[limits]\ntool_calls = 1\n" + TOOL)  # fmt: skip
    assert guide.told[2:5] == ["ok", "ok", "2: 2+2?  4"]
    assert contents(outcome)[2] == "4" and len(outcome.sample.messages) == 4
    assert len(outcome.sample.tool_spans) == 2 and outcome.stop_reason == "final_answer"


@pytest.mark.parametrize(
    ("limits", "kind", "lifted"),
    [
        ("turns = 1", "max_turns", "turns"),
        ("total_tokens = 10", "max_total_tokens", "total_tokens"),
        ("tool_calls = 0", "max_tool_calls", "tool_calls"),
    ],
)
def test_a_limit_is_set_aside_or_ends_the_rollout(limits: str, kind: str, lifted: str, project: Any) -> None:
    project.write("tools.py", 'def add(a: int) -> int:\n    "Add."\n    return a\n')
    answers = [project.says("", ("add", '{"a": 1}')), project.says("4")]
    toml = f"[limits]\n{limits}\n{TOOL}"
    past = Script(retries=1)
    assert step(project, past, answers, toml).stop_reason == "final_answer"
    assert f"lifted {lifted}" in past.told
    assert step(project, Script(), answers, toml).stop_reason == kind


def test_too_many_malformed_calls_are_final(project: Any) -> None:
    project.write("tools.py", 'def add(a: int) -> int:\n    "Add."\n    return a\n')
    guide = Script(retries=5)
    outcome = step(project, guide, [project.says("", ("add", "{"))], "[limits]\nmalformed_calls = 1\n" + TOOL)
    assert outcome.stop_reason == "malformed_calls" and "malformed_calls, final" in guide.told
