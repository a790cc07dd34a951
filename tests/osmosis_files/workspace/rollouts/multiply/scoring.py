"""The grader that the entrypoint imports."""

from osmosis_ai.rollout import Grader, GraderContext


class MathGrader(Grader):
    async def grade(self, ctx: GraderContext) -> float:
        return 1.0 if ctx.output.strip() == ctx.label else 0.0
