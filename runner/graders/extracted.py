"""`Extracted`: a grader that is shown the extracted answer as the output, instead of the whole of it."""

from __future__ import annotations

from runner.graders.answer import answer_of
from runner.graders.extract import Extraction
from runner.graders.grader import Grader, GraderContext, Score
from runner.graders.worker import Workers


class Extracted(Grader):
    """Wraps `grader`; an output that holds no answer scores 0 without asking it. `timeout` is in seconds."""

    def __init__(self, grader: Grader, extraction: Extraction, workers: Workers, timeout: float) -> None:
        super().__init__()
        self._grader = grader
        self._extraction = extraction
        self._workers = workers
        self._timeout = timeout
        self.range, self.needs_label = grader.range, grader.needs_label

    async def grade(self, ctx: GraderContext) -> Score | float | None:
        answer = await answer_of(ctx, self._extraction, self._workers, self._timeout)
        if isinstance(answer, Score):
            return answer
        ctx.output = answer
        return await self._grader.grade(ctx)
