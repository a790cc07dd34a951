"""The chat and tools agents, driven by a model that says what it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from runner.records.completion import Completion, ToolSpec
from runner.records.failure import LimitReached
from runner.records.message import Message, ToolCall
from runner.workflows.answers import ToolAnswers
from runner.workflows.chat import ChatWorkflow
from runner.workflows.tools import ToolsWorkflow
from runner.workflows.workflow import AgentWorkflow, AgentWorkflowContext, AgentWorkflowOutput

PROMPT: list[Message] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]


@dataclass
class ScriptedDriver:
    """Answers with `replies` in order, and remembers what it was asked."""

    replies: list[Completion]
    asked: list[list[Message]] = field(default_factory=list)
    offered: list[Sequence[ToolSpec] | None] = field(default_factory=list)
    called: list[list[ToolCall]] = field(default_factory=list)
    tools: Sequence[ToolSpec] = ()
    statuses: Mapping[str, str] = field(default_factory=dict)

    async def chat(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec] | None, sampling: Mapping[str, Any]
    ) -> Completion:
        self.asked.append(list(messages))
        self.offered.append(tools)
        if not self.replies:
            raise LimitReached("12 turns", kind="max_turns")
        return self.replies.pop(0)

    async def call_tools(self, calls: Sequence[ToolCall]) -> ToolAnswers:
        self.called.append(list(calls))
        seen: set[str] = set()
        answers = []
        for number, call in enumerate(calls):
            name = call.id if call.id and call.id not in seen else f"made-{number}"
            seen.add(name)
            answers.append({"role": "tool", "tool_call_id": name, "content": f"{call.name} ok"})
        return ToolAnswers(answers, [self.statuses.get(call.name, "ok") for call in calls])

    def log_event(self, name: str, data: Mapping[str, Any]) -> None:
        raise AssertionError("our agents log nothing")


def says(text: str | None, *calls: tuple[str, str], finish: str = "stop", **more: Any) -> Completion:
    message: Message = {"role": "assistant", "content": text, **more}
    if calls:
        message["tool_calls"] = [
            {"id": each, "type": "function", "function": {"name": name, "arguments": "{}"}} for each, name in calls
        ]
    return Completion(message, finish)


def play(workflow: AgentWorkflow[Any], *replies: Completion) -> tuple[AgentWorkflowOutput, ScriptedDriver]:
    driver = ScriptedDriver(list(replies))
    ctx: AgentWorkflowContext[Any] = AgentWorkflowContext(
        prompt=[dict(each) for each in PROMPT],
        config=None,
        metadata={},
        rollout_id="r-1",
        attempt=0,
        driver=driver,
        resources={},
    )
    output = asyncio.run(workflow.run(ctx))
    assert isinstance(output, AgentWorkflowOutput)
    return output, driver


ENDS = [
    (says("Hello"), "final_answer"),
    (says("Hel", finish="length"), "max_tokens"),
    (says("", finish="content_filter"), "content_filter"),
    (says(None), "empty_answer"),
    (says(" \n"), "empty_answer"),
]


@pytest.mark.parametrize(("reply", "reason"), ENDS)
def test_chat_is_one_turn_without_tools(reply: Completion, reason: str) -> None:
    output, driver = play(ChatWorkflow(), reply)
    assert output.messages == [*PROMPT, reply.message]
    assert output.stop_reason == reason
    assert driver.asked == [PROMPT]
    assert driver.offered == [[]]


@pytest.mark.parametrize(("reply", "reason"), [*ENDS, (says(None, ("a", "search"), finish="length"), "max_tokens")])
def test_tools_ends_as_chat_does_when_nothing_is_called(reply: Completion, reason: str) -> None:
    output, driver = play(ToolsWorkflow(), reply)
    assert (output.messages, output.stop_reason) == ([*PROMPT, reply.message], reason)
    assert driver.offered == [None]
    assert driver.called == []


def test_tools_calls_until_an_answer_and_adds_nothing_of_its_own() -> None:
    first = says("Let me look.", ("a", "search"), ("b", "lookup"), finish="tool_calls")
    output, driver = play(ToolsWorkflow(), first, says("42"))
    assert output.messages == [
        *PROMPT,
        first.message,
        {"role": "tool", "tool_call_id": "a", "content": "search ok"},
        {"role": "tool", "tool_call_id": "b", "content": "lookup ok"},
        says("42").message,
    ]
    assert output.stop_reason == "final_answer"
    assert driver.asked[1] == output.messages[:-1]
    assert [[call.name for call in calls] for calls in driver.called] == [["search", "lookup"]]


def test_a_finish_tool_ends_after_all_calls_of_its_turn() -> None:
    last = says(None, ("a", "finish"), ("b", "search"))
    output, driver = play(ToolsWorkflow(["no_tool_call", "tool:finish"]), last, says("never"))
    assert output.stop_reason == "finish_tool"
    assert [call.name for call in driver.called[0]] == ["finish", "search"]
    assert output.messages is not None
    assert output.messages[-1]["content"] == "search ok"
    assert len(driver.asked) == 1


def test_without_no_tool_call_an_answer_is_asked_to_go_on() -> None:
    output, driver = play(ToolsWorkflow(["tool:finish"]), says("I think"), says(None, ("a", "finish")))
    assert output.stop_reason == "finish_tool"
    assert driver.asked[1][-2:] == [
        {"role": "assistant", "content": "I think"},
        {"role": "user", "content": "Go on. Call `finish` when you are done."},
    ]


def test_limits_pass_through() -> None:
    with pytest.raises(LimitReached, match="12 turns"):
        play(ToolsWorkflow(), says(None, ("a", "search")))


def test_reasoning_is_not_sent_again() -> None:
    first = says(None, ("a", "search"), reasoning_content="hmm", reasoning="hmm")
    output, driver = play(ToolsWorkflow(), first, says("42", reasoning="so"))
    assert "hmm" not in str(driver.asked)
    assert "so" not in [key for message in output.messages or [] for key in message]
    assert "reasoning" in first.message, "what the endpoint gave is not changed"


def test_calls_without_an_id_get_that_of_their_answer() -> None:
    output, _ = play(ToolsWorkflow(), says(None, ("", "search"), ("x", "a"), ("x", "b")), says("42"))
    assert output.messages is not None
    assert [call["id"] for call in output.messages[2]["tool_calls"]] == ["made-0", "x", "made-2"]
    assert [message["tool_call_id"] for message in output.messages[3:6]] == ["made-0", "x", "made-2"]


@pytest.mark.parametrize("stop_when", [["tool"], ["tool:"], ["finish"], []])
def test_unknown_stop_conditions_are_refused(stop_when: list[str]) -> None:
    with pytest.raises(ValueError, match="stop"):
        ToolsWorkflow(stop_when)
