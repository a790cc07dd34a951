"""`exact`: the answer is the expected text, up to what the file says to ignore.

Both sides are brought to the same Unicode form first: two ways to encode an accent are one text.
"""

from __future__ import annotations

import unicodedata
from typing import Any

from runner.graders.answer import AnswerGrader, verdict
from runner.graders.grader import Score
from runner.graders.labels import Expect
from runner.graders.patterns import LONG


class ExactGrader(AnswerGrader):
    """1 when the answer equals the expected text, else 0. Keywords of `AnswerGrader` go through.

    With `ignore_space`, runs of white space count as one space and none at the ends; without, each character counts.
    """

    def __init__(
        self,
        expect: Expect | None = None,
        *,
        ignore_case: bool = False,
        ignore_space: bool = True,
        ignore_punctuation: bool = False,
        **answer: Any,
    ) -> None:
        super().__init__(expect, **answer)
        self._ignore_case = ignore_case
        self._ignore_space = ignore_space
        self._ignore_punctuation = ignore_punctuation

    async def compare(self, answer: str, expected: str) -> Score:
        if len(answer) <= LONG:
            return verdict(self._fold(answer) == self._fold(expected), answer, expected)
        from asyncio import to_thread

        folded = await to_thread(self._fold, answer)
        return verdict(folded == self._fold(expected), answer, expected)

    def _fold(self, text: str) -> str:
        text = unicodedata.normalize("NFC", text)
        if self._ignore_case:
            text = text.casefold()
        if self._ignore_punctuation:
            text = "".join(character for character in text if not unicodedata.category(character).startswith("P"))
        return " ".join(text.split()) if self._ignore_space else text
