"""An agent of your own: it writes a draft and revises it."""

from runner import AgentWorkflow, AgentWorkflowConfig, AgentWorkflowContext, AgentWorkflowOutput


class DraftConfig(AgentWorkflowConfig):
    """What `[workflow] config` may say."""

    revisions: int = 1


class DraftAndRevise(AgentWorkflow[DraftConfig]):
    """Asks for a draft, then asks so many times to revise it."""

    async def run(self, ctx: AgentWorkflowContext[DraftConfig]) -> AgentWorkflowOutput:
        revisions = ctx.config.revisions if ctx.config else 1
        messages = list(ctx.prompt)
        messages.append((await ctx.chat(messages)).message)
        for _ in range(revisions):
            messages.append({"role": "user", "content": "Revise it: shorter, and say what it does."})
            messages.append((await ctx.chat(messages)).message)
        return AgentWorkflowOutput(messages=messages, metrics={"revisions": float(revisions)})
