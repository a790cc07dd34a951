"""`ToolsWorkflow`: native tool calling until an answer, a finish tool, or a limit.

Each turn adds the assistant message as it came and its tool messages, nothing else: what a trainer sees is what the
endpoint said. Limits are the context's: it raises, and that passes through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runner.records.message import Message, ToolCall, text_of, tool_calls_of
from runner.workflows.turn import cut_short, resendable
from runner.workflows.workflow import AgentWorkflow, AgentWorkflowContext, AgentWorkflowOutput

DEFAULT_STOP_WHEN = ("no_tool_call",)


class ToolsWorkflow(AgentWorkflow[Any]):
    """Calls tools until one of `stop_when`: `"no_tool_call"`, an answer without a call; `"tool:NAME"`, a call of NAME.

    A call of NAME counts only if it went well: bad arguments or an error are an answer that the model can mend. The
    calls of a turn run in parallel, those beside a finish tool too. Without `"no_tool_call"`, an answer that calls
    nothing is followed by a user message that asks to go on. Stop reasons: final_answer, finish_tool, max_tokens,
    content_filter, empty_answer. Raises `ValueError` for a condition that is neither of the two.
    """

    def __init__(self, stop_when: Sequence[str] = DEFAULT_STOP_WHEN) -> None:
        super().__init__(None)
        self._answer_stops = "no_tool_call" in stop_when
        self._finish = frozenset(each.removeprefix("tool:") for each in stop_when if each != "no_tool_call")
        for each in stop_when:
            if each != "no_tool_call" and not (each.startswith("tool:") and each != "tool:"):
                raise ValueError(f"`{each}` is no stop condition; write `no_tool_call` or `tool:NAME`")
        if not stop_when:
            raise ValueError("`stop_when` is empty: nothing would end the rollout but a limit")

    async def run(self, ctx: AgentWorkflowContext[Any]) -> AgentWorkflowOutput:
        messages = ctx.prompt
        while True:
            completion = await ctx.chat(messages)
            message = resendable(completion)
            messages = [*messages, message]
            calls = tool_calls_of(message)
            stop = cut_short(completion) or (self._without_calls(message) if not calls else None)
            if stop is not None:
                return AgentWorkflowOutput(messages=messages, stop_reason=stop)
            if not calls:
                messages = [*messages, self._nudge()]
                continue
            answers = await ctx.call_tools(calls)
            messages = [*messages[:-1], _with_answered_ids(message, calls, answers), *answers]
            if self._finished(calls, answers.statuses):
                return AgentWorkflowOutput(messages=messages, stop_reason="finish_tool")

    def _finished(self, calls: Sequence[ToolCall], statuses: Sequence[str]) -> bool:
        return any(call.name in self._finish and how == "ok" for call, how in zip(calls, statuses, strict=True))

    def _without_calls(self, message: Message) -> str | None:
        if not self._answer_stops:
            return None
        return "final_answer" if text_of(message).strip() else "empty_answer"

    def _nudge(self) -> Message:
        # An endpoint that is asked again after an assistant message would continue that message, or refuse.
        tools = " or ".join(f"`{name}`" for name in sorted(self._finish))
        return {"role": "user", "content": f"Go on. Call {tools} when you are done."}


def _with_answered_ids(message: Message, calls: Sequence[ToolCall], answers: Sequence[Message]) -> Message:
    """`message`, and where a call had no id of its own, the one that its answer was given."""
    ids = [answer.get("tool_call_id") for answer in answers]
    if ids == [call.id for call in calls]:
        return message
    # `calls` skips entries that are no objects, so ids are dealt out to objects only.
    given = iter(ids)
    entries = [{**entry, "id": next(given)} if isinstance(entry, dict) else entry for entry in message["tool_calls"]]
    return {**message, "tool_calls": entries}
