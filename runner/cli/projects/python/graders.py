"""A grader of your own. What it raises makes the rollout ungraded, never a score of 0."""

from runner import Grader, GraderContext, Score


class Short(Grader):
    """1 when the answer keeps to the row's number of words, 0 when it is longer by more than `slack`."""

    async def grade(self, ctx: GraderContext) -> Score:
        slack = (self.config or {}).get("slack", 0)
        words, allowed = len(ctx.output.split()), int(ctx.row["words"])
        reason = f"{words} words, {allowed} allowed"
        return Score(1.0 if words <= allowed + slack else 0.0, reason)
