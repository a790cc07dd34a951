"""The entrypoint of a rollout, laid out as the SDK has it: the classes may come from files beside it."""

from osmosis_ai.rollout import AgentWorkflow, AgentWorkflowConfig, AgentWorkflowContext
from scoring import MathGrader

__all__ = ["MathGrader"]


class MathConfig(AgentWorkflowConfig):
    style: str = "short"
    service_token: str = ""


class MathAgentWorkflow(AgentWorkflow[MathConfig]):
    async def run(self, ctx: AgentWorkflowContext[MathConfig]) -> list:
        messages = list(ctx.prompt)
        messages.append((await ctx.chat(messages)).message)
        return messages


Workflow = MathAgentWorkflow
workflow_config = MathConfig(name="math", style="long", service_token="tok-123")  # noqa: S106
