"""`regex`: a pattern matches somewhere in the answer, or all of it. No label is needed."""

from __future__ import annotations

from runner.graders.answer import TIMEOUT, answer_of, short
from runner.graders.extract import Extraction
from runner.graders.grader import Grader, GraderContext, Score
from runner.graders.patterns import Pattern
from runner.graders.worker import Workers


class RegexGrader(Grader):
    """1 when `pattern` matches (`full`: the whole answer, ends stripped), else 0.

    Raises `GraderMisfit` for a pattern that does not compile; `grade` raises `GraderTimeout` for one that loses itself.
    """

    range = (0.0, 1.0)
    needs_label = False

    def __init__(
        self,
        pattern: str,
        *,
        ignore_case: bool = False,
        full: bool = False,
        extraction: Extraction | None = None,
        workers: Workers | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        super().__init__()
        self._pattern = Pattern(pattern, ignore_case, full, 0, "first")
        self._extraction = extraction
        self._workers = workers or Workers()
        self._timeout = timeout

    async def grade(self, ctx: GraderContext) -> Score:
        answer = await answer_of(ctx, self._extraction, self._workers, self._timeout)
        if isinstance(answer, Score):
            return answer
        text = answer.strip() if self._pattern.full else answer
        found = await self._pattern.find_safely(text, self._workers, self._timeout)
        if found is not None:
            return Score(1.0, f"{self._pattern.text} matches {short(found)}")
        return Score(0.0, f"{self._pattern.text} matches nothing in {short(answer)}")
