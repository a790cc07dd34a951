"""`contains`: the expected texts, all or any of them, stand in the answer."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any, Literal

from runner.graders.answer import AnswerGrader, answer_of, short
from runner.graders.grader import GraderContext, GraderMisfit, Score
from runner.graders.labels import Expect, require_label
from runner.records.failure import GraderError


class ContainsGrader(AnswerGrader):
    """1 when `mode` of the expected texts stand in the answer, else 0. Keywords of `AnswerGrader` go through.

    `expect` is one callable, a sequence of them, or None for the label. Raises `GraderMisfit` for an empty sequence.
    """

    def __init__(
        self,
        expect: Expect | Sequence[Expect] | None = None,
        *,
        mode: Literal["all", "any"] = "all",
        ignore_case: bool = False,
        **answer: Any,
    ) -> None:
        several: Sequence[Expect] = [expect] if callable(expect) else ([require_label] if expect is None else expect)
        if not several:
            raise GraderMisfit("contains expects an empty list of texts: every output would pass")
        super().__init__(None if expect is None else several[0], **answer)
        self._several = several
        self._mode = mode
        self._ignore_case = ignore_case

    async def grade(self, ctx: GraderContext) -> Score:
        if self.needs_label:
            require_label(ctx)
        expected = [expect(ctx) for expect in self._several]
        answer = await answer_of(ctx, self._extraction, self._workers, self._timeout)
        return answer if isinstance(answer, Score) else self._look(answer, expected)

    async def compare(self, answer: str, expected: str) -> Score:
        return self._look(answer, [expected])

    def _look(self, answer: str, expected: list[str]) -> Score:
        if not all(text.strip() for text in expected):
            raise GraderError("an expected text is blank here, and every output contains it; check the row's columns")
        folded = self._fold(answer)
        found = [text for text in expected if self._fold(text) in folded]
        missing = [text for text in expected if text not in found]
        if self._mode == "any" and found:
            return Score(1.0, f"contains {_listed(found)}")
        if self._mode == "all" and not missing:
            return Score(1.0, f"contains {_listed(expected)}")
        return Score(0.0, f"does not contain {_listed(missing)}")

    def _fold(self, text: str) -> str:
        text = unicodedata.normalize("NFC", text.strip())
        return text.casefold() if self._ignore_case else text


def _listed(texts: list[str]) -> str:
    return ", ".join(short(text) for text in texts)
