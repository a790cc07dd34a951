"""An agent of Strands: it looks prices up and adds them."""

from strands import tool

from runner import (
    AgentWorkflow,
    AgentWorkflowConfig,
    AgentWorkflowContext,
    OsmosisRolloutModel,
    OsmosisStrandsAgent,
    strands_tools,
)


@tool
def add(prices: list[float]) -> str:
    """Add prices.

    Args:
        prices: What to add.
    """
    return f"{sum(prices):g}"


class ClerkConfig(AgentWorkflowConfig):
    """What `[workflow] config` may say."""

    politely: bool = False


class Clerk(AgentWorkflow[ClerkConfig]):
    """Answers with the tools of the file and one of its own."""

    async def run(self, ctx: AgentWorkflowContext[ClerkConfig]) -> None:
        """The conversation of the agent is the rollout's sample: there is nothing to return."""
        politely = ctx.config is not None and ctx.config.politely
        agent = OsmosisStrandsAgent(
            name="clerk",  # what a controller that trains the policy is told the sample is called
            model=OsmosisRolloutModel(),  # stands for the policy; its parameters are `[sampling]`
            tools=[*strands_tools(ctx), add],
            system_prompt="Say what it costs, as a number." + (" Say thank you." if politely else ""),
            messages=ctx.prompt,
            callback_handler=None,
        )
        await agent.invoke_async()
