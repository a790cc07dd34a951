"""`ChatWorkflow`: one question, one answer. No tools are offered."""

from __future__ import annotations

from typing import Any

from runner.records.message import text_of
from runner.workflows.turn import cut_short, resendable
from runner.workflows.workflow import AgentWorkflow, AgentWorkflowContext, AgentWorkflowOutput


class ChatWorkflow(AgentWorkflow[Any]):
    """A single turn. Stop reasons: final_answer, max_tokens, content_filter, empty_answer."""

    async def run(self, ctx: AgentWorkflowContext[Any]) -> AgentWorkflowOutput:
        completion = await ctx.chat(ctx.prompt, tools=[])
        message = resendable(completion)
        answered = "final_answer" if text_of(message).strip() else "empty_answer"
        return AgentWorkflowOutput(messages=[*ctx.prompt, message], stop_reason=cut_short(completion) or answered)
