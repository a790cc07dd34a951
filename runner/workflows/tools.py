"""`ToolsWorkflow`: calling tools until an answer, a finish tool, or a limit.

Each turn adds the assistant message as it came and the results of its calls, nothing else: what a trainer sees is what
the endpoint said. Limits are the context's: it raises, and that passes through.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from runner.records.failure import LimitReached
from runner.records.message import Message, ToolCall
from runner.workflows.answers import ToolAnswers
from runner.workflows.calling import Calling, NativeCalling, Turn
from runner.workflows.workflow import AgentWorkflow, AgentWorkflowContext, AgentWorkflowOutput

DEFAULT_STOP_WHEN = ("no_tool_call",)


class ToolsWorkflow(AgentWorkflow[Any]):
    """Calls tools until one of `stop_when`: `"no_tool_call"`, an answer without a call; `"tool:NAME"`, a call of NAME.

    A call of NAME counts only if it went well: bad arguments or an error are an answer that the model can mend. The
    calls of a turn run in parallel, those beside a finish tool too. Without `"no_tool_call"`, an answer that calls
    nothing is followed by a user message that asks to go on. What a finish tool is given as `answer` is the answer.
    Stop reasons: final_answer, finish_tool, max_tokens, content_filter, empty_answer. Raises `ValueError` for a
    condition that is neither of the two.
    """

    def __init__(self, stop_when: Sequence[str] = DEFAULT_STOP_WHEN, calling: Calling | None = None) -> None:
        super().__init__(None)
        self._calling: Calling = calling or NativeCalling()
        self._answer_stops = "no_tool_call" in stop_when
        self._finish = frozenset(each.removeprefix("tool:") for each in stop_when if each != "no_tool_call")
        for each in stop_when:
            if each != "no_tool_call" and not (each.startswith("tool:") and each != "tool:"):
                raise ValueError(f"`{each}` is no stop condition; write `no_tool_call` or `tool:NAME`")
        if not stop_when:
            raise ValueError("`stop_when` is empty: nothing would end the rollout but a limit")

    async def run(self, ctx: AgentWorkflowContext[Any]) -> AgentWorkflowOutput:
        try:
            return await self._play(ctx, self._calling.opening(ctx.prompt, ctx.tools))
        except LimitReached:
            if not self._calling.marks_answers:
                raise
            return AgentWorkflowOutput(answer="")  # what was said last is no answer, though it may look like one

    async def _play(self, ctx: AgentWorkflowContext[Any], messages: list[Message]) -> AgentWorkflowOutput:
        while True:
            turn = await self._calling.ask(ctx, messages)
            messages = [*messages, turn.message]
            if turn.stop is not None:
                return self._output(messages, turn.stop, turn.answer)
            if turn.calls:
                await self._before_calls(ctx)
                messages, answers = await self._calling.use(ctx, messages, turn)
                more = self._after_calls(turn, answers)
                finish, stop = self._finished(turn.calls, answers), self._ends()
                if finish is not None:
                    more = self._before_end()
                    if not more:
                        return self._output(messages, "finish_tool", _answer_in(finish), turn.said)
                elif stop is not None:
                    return self._output(messages, stop, "")
            elif turn.correction:
                ctx.driver.misread()
                more = turn.correction
            else:
                more = self._before_end() if self._answer_stops else self._nudge()
                if not more:
                    return self._output(messages, "final_answer" if turn.answer else "empty_answer", turn.answer)
            if more:
                messages = [*messages, {"role": "user", "content": more}]

    async def _before_calls(self, ctx: AgentWorkflowContext[Any]) -> None:
        """What to do before the calls of a turn are run. For agents made of this one, as those below."""

    def _after_calls(self, turn: Turn, answers: ToolAnswers) -> str:
        """What else to say when the calls of a turn were answered; empty for nothing."""
        return ""

    def _ends(self) -> str | None:
        """Why the agent stops after its calls, a finish tool aside; None: it goes on."""
        return None

    def _before_end(self) -> str:
        """What to say to an agent that would end; empty to let it."""
        return ""

    def _nudge(self) -> str:
        # An endpoint that is asked again after an assistant message would continue that message, or refuse.
        tools = " or ".join(f"`{name}`" for name in sorted(self._finish))
        return f"Go on. Call {tools} when you are done."

    def _finished(self, calls: Sequence[ToolCall], answers: ToolAnswers) -> ToolCall | None:
        for call, how in zip(calls, answers.statuses, strict=True):
            if call.name in self._finish and how == "ok":
                return call
        return None

    def _output(
        self, messages: list[Message], stop_reason: str, answer: str | None, said: str | None = None
    ) -> AgentWorkflowOutput:
        marked = answer if stop_reason == "finish_tool" or self._calling.marks_answers else None
        return AgentWorkflowOutput(
            messages=messages, stop_reason=stop_reason, answer=said if marked is None else marked
        )


def _answer_in(finish: ToolCall) -> str | None:
    try:
        arguments = json.loads(finish.arguments or "{}")
    except (ValueError, RecursionError):
        return None
    answer = arguments.get("answer") if isinstance(arguments, dict) else None
    return answer if isinstance(answer, str) else None
