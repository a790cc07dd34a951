"""`AnswerGrader`: extract the answer, render what is expected, compare. Most graders differ only in the last step.

Nothing to extract is a score of 0 with the reason; a label that is missing is `NoLabel`, before anything is compared.
"""

from __future__ import annotations

from abc import abstractmethod

from runner.graders.extract import Extraction, extract
from runner.graders.grader import Grader, GraderContext, Score
from runner.graders.labels import Expect, require_label
from runner.graders.worker import Workers

TIMEOUT = 60.0


class AnswerGrader(Grader):
    """Compares the answer in the output with the expected text.

    `expect` gives that text and is the label by default. `needs_label` says whether a row without a label can be
    graded; by default exactly when `expect` is not given. `timeout` is in seconds, for one dear step in `workers`,
    which are shared by the graders of a run and closed by whoever made them.
    """

    range = (0.0, 1.0)

    def __init__(
        self,
        expect: Expect | None = None,
        *,
        extraction: Extraction | None = None,
        needs_label: bool | None = None,
        workers: Workers | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        super().__init__()
        self._expect = expect or require_label
        self._extraction = extraction
        self.needs_label = expect is None if needs_label is None else needs_label
        self._workers = workers or Workers()
        self._timeout = timeout

    async def grade(self, ctx: GraderContext) -> Score:
        if self.needs_label:
            require_label(ctx)
        expected = self._expect(ctx)
        answer = await answer_of(ctx, self._extraction, self._workers, self._timeout)
        return answer if isinstance(answer, Score) else await self.compare(answer, expected)

    @abstractmethod
    async def compare(self, answer: str, expected: str) -> Score:
        """The score of `answer`, which was extracted, against `expected`."""


async def answer_of(ctx: GraderContext, extraction: Extraction | None, workers: Workers, timeout: float) -> str | Score:
    """The answer to grade, or the score of an output that holds none. Without an extraction it is the whole output."""
    if extraction is None:
        return ctx.output
    found = await extract(extraction, ctx.output, workers, timeout)
    if found is not None:
        return found
    return Score(0.0, f"nothing to extract: no match for {extraction} in {short(ctx.output)}")


def short(text: str, length: int = 80) -> str:
    """`text` for a reason: quoted, on one line, its end cut."""
    shown = " ".join(text[: length * 4].split())
    return repr(shown if len(shown) <= length and len(text) <= length * 4 else f"{shown[:length]}…")


def verdict(right: bool, answer: str, expected: str) -> Score:
    """1 or 0, with the reason that names both sides."""
    return Score(float(right), f"{short(answer)} {'is' if right else 'is not'} {short(expected)}")
