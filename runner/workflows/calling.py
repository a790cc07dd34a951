"""`Calling`: how a model asks for tools and is told what came of it: by the endpoint's own words, or in a text format.

The loop of an agent is the same either way (`tools.py`); a way of calling knows what goes over the wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from runner.records.completion import ToolSpec
from runner.records.message import Message, ToolCall, text_of, tool_calls_of
from runner.workflows.answers import ToolAnswers
from runner.workflows.turn import cut_short, resendable
from runner.workflows.workflow import AgentWorkflowContext


@dataclass(frozen=True, slots=True)
class Turn:
    """What the model said in one turn. `message` is its answer as it goes back into the conversation.

    `stop` is why the endpoint broke off, `answer` the final answer, None where this is none. `correction` is what to
    say to an answer that holds neither a call nor an answer; `remark` goes with the results of the calls.
    `said` is the text beside the calls, where the message holds more than that.
    """

    message: Message
    calls: tuple[ToolCall, ...] = ()
    answer: str | None = None
    stop: str | None = None
    correction: str = ""
    remark: str = ""
    said: str | None = None


class Calling(Protocol):
    """A way of calling tools. Shared by rollouts: it keeps nothing between turns."""

    @property
    def marks_answers(self) -> bool:
        """Whether an answer stands in a message that holds more than it: then graders are told the answer itself."""
        ...

    def opening(self, prompt: Sequence[Message], specs: Sequence[ToolSpec]) -> list[Message]:
        """The first messages, with whatever the model must be told of its tools."""
        ...

    async def ask(self, ctx: AgentWorkflowContext[Any], messages: Sequence[Message]) -> Turn:
        """One turn of the model. Raises what `ctx.chat` raises."""
        ...

    async def use(
        self, ctx: AgentWorkflowContext[Any], messages: Sequence[Message], turn: Turn
    ) -> tuple[list[Message], ToolAnswers]:
        """Run the calls of a turn, whose message is the last one; the conversation with their results, and these."""
        ...


class NativeCalling:
    """Calls as the endpoint makes them: `tool_calls` and tool messages. Adds nothing of its own to what is said."""

    marks_answers = False

    def __init__(self, *, resend_reasoning: bool = False) -> None:
        self._resend = resend_reasoning

    def opening(self, prompt: Sequence[Message], specs: Sequence[ToolSpec]) -> list[Message]:
        return list(prompt)

    async def ask(self, ctx: AgentWorkflowContext[Any], messages: Sequence[Message]) -> Turn:
        completion = await ctx.chat(messages)
        message = resendable(completion, reasoning=self._resend)
        calls = tuple(tool_calls_of(message))
        answer = None if calls else text_of(message).strip()
        return Turn(message, calls, answer, cut_short(completion))

    async def use(
        self, ctx: AgentWorkflowContext[Any], messages: Sequence[Message], turn: Turn
    ) -> tuple[list[Message], ToolAnswers]:
        answers = await ctx.call_tools(turn.calls)
        return [*messages[:-1], _with_answered_ids(turn.message, turn.calls, answers), *answers], answers


def _with_answered_ids(message: Message, calls: Sequence[ToolCall], answers: Sequence[Message]) -> Message:
    """`message`, and where a call had no id of its own, the one that its answer was given."""
    ids = [answer.get("tool_call_id") for answer in answers]
    if ids == [call.id for call in calls]:
        return message
    # `calls` skips entries that are no objects, so ids are dealt out to objects only.
    given = iter(ids)
    entries = [{**entry, "id": next(given)} if isinstance(entry, dict) else entry for entry in message["tool_calls"]]
    return {**message, "tool_calls": entries}
