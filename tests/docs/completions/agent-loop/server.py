"""An agent loop of the first SDK."""

from osmosis_ai.rollout import RolloutAgentLoop, RolloutContext, RolloutRequest, RolloutResult


class CalculatorAgent(RolloutAgentLoop):
    """Asks once."""

    name = "calculator"

    def get_tools(self, request: RolloutRequest) -> list:
        """None."""
        return []

    async def run(self, ctx: RolloutContext) -> RolloutResult:
        """One answer."""
        messages = list(ctx.request.messages)
        messages.append((await ctx.chat(messages)).message)
        return ctx.complete(messages)


agent_loop = CalculatorAgent()
