"""Two workflows, which the SDK refuses."""

from runner import AgentWorkflow


class First(AgentWorkflow):
    async def run(self, ctx):
        return None


class Second(First):
    pass
