"""`choice`: one of several options was chosen, by its letter or by its text.

An answer that names several is wrong, not lucky: ambiguity is a score of 0 with the reason.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any

from runner.graders.answer import AnswerGrader, short
from runner.graders.grader import GraderMisfit, Score
from runner.graders.labels import Expect
from runner.graders.latex import boxed, plain
from runner.records.failure import GraderError

_LOOK = 20_000
"""Characters at the end of an answer that are read: a choice is stated at its end."""


class ChoiceGrader(AnswerGrader):
    """1 when the answer chooses the expected option, else 0. Keywords of `AnswerGrader` go through.

    `choices` are the letters themselves (`["A", "B"]`) or texts, which get the letters A, B, C. The expected text is a
    letter or an option's text. Raises `GraderMisfit` for fewer than two choices, more than 26, or two alike.
    """

    def __init__(self, choices: Sequence[str], expect: Expect | None = None, **answer: Any) -> None:
        super().__init__(expect, **answer)
        if not 2 <= len(choices) <= 26:
            raise GraderMisfit(f"choices must be 2 to 26, found {len(choices)}")
        folded = [_fold(choice) for choice in choices]
        if len(set(folded)) < len(folded) or not all(folded):
            raise GraderMisfit(f"choices must be different texts, found {list(choices)}")
        only_letters = all(len(choice) == 1 and choice.isalpha() for choice in choices)
        self._letters = [c.upper() for c in choices] if only_letters else list(string.ascii_uppercase[: len(choices)])
        self._texts = [] if only_letters else folded
        self._any = f"[{''.join(self._letters)}{''.join(self._letters).lower()}]"

    async def compare(self, answer: str, expected: str) -> Score:
        wanted = self._index(expected)
        if wanted is None:
            listed = ", ".join(self._letters)
            raise GraderError(f"the expected choice {short(expected)} is none of the choices ({listed})")
        found, how = self._chosen(answer[-_LOOK:])
        if not found:
            return Score(0.0, f"chose nothing: {short(answer[-_LOOK:])}")
        names = " and ".join(self._letters[index] for index in sorted(found))
        if len(found) > 1:
            return Score(0.0, f"chose several: {names} ({how})")
        return Score(float(wanted in found), f"chose {names} ({how}), expected {self._letters[wanted]}")

    def _index(self, text: str) -> int | None:
        """The option that `text` names alone: by its text, else by its letter."""
        bare = _fold(plain(text))
        if bare in self._texts:
            return self._texts.index(bare)
        letter = re.fullmatch(rf"[(\[]?({self._any})[)\].:]?", plain(text))
        return self._letters.index(letter[1].upper()) if letter else None

    def _chosen(self, text: str) -> tuple[set[int], str]:
        """The options that `text` chooses, from the most explicit way of saying so to the least."""
        text = boxed(text) or text
        alone = self._index(text)
        if alone is not None:
            return {alone}, "alone"
        if stated := self._stated(text):
            return stated, "stated"
        if led := self._led(text):
            return led, "letter first"
        if marked := {self._at(found) for found in re.findall(rf"[(\[]({self._any.upper()})[)\]]", text)}:
            return marked, "in brackets"
        return self._told(text), "by text"

    def _stated(self, text: str) -> set[int]:
        """The last "the answer is (B)", with "B or C" taken as both, and "B. text" as text, too."""
        says = r"(?:answer|choice|option)(?:\s+is|\s*:|\s+should be|\s+must be)?[\s:*_$(\[\"']*(?:option\s+|choice\s+)?"
        letter = rf"(?<![A-Za-z])({self._any})(?![A-Za-z'’])"
        more = rf"(?:[\s*_)\]]*(?:,|/|\bor\b|\band\b|&)[\s*_(\[]*{letter})*"
        last: re.Match[str] | None = None
        for last in re.finditer(says + letter + more, text, re.IGNORECASE):  # noqa: B007
            pass
        if last is None:
            # "The answer is Paris": the options named after the last such words.
            _, mark, rest = text.rpartition("answer is")
            return self._told(rest) if mark else set()
        tail = last[0][last.start(1) - last.start() :]
        letters = {self._at(found) for found in re.findall(rf"(?<![A-Za-z])({self._any})(?![A-Za-z])", tail)}
        return letters | self._told(text[last.end() : last.end() + 200].split("\n")[0])

    def _led(self, text: str) -> set[int]:
        """ "B) Paris" or "B. Paris": the letter, and the option whose text follows, which may be another."""
        lines = text.strip().splitlines()
        first = re.match(rf"[*_\s(\[]*({self._any.upper()})[*_]*[)\].:][*_]*(?:\s+(.*))?$", lines[0]) if lines else None
        return {self._at(first[1])} | self._told(first[2] or "") if first and len(lines) == 1 else set()

    def _told(self, text: str) -> set[int]:
        """Options whose text stands in `text`; one that is part of a longer one that stands there does not count."""
        rest, found = f" {_fold(text)} ", set()
        for index in sorted(range(len(self._texts)), key=lambda at: -len(self._texts[at])):
            words = f" {self._texts[index]} "
            if words in rest:
                found.add(index)
                rest = rest.replace(words, " \x00 ")
        return found

    def _at(self, letter: str) -> int:
        return self._letters.index(letter.upper())


def _fold(text: str) -> str:
    """Lower case, one space between words, no punctuation around them but signs that carry meaning."""
    return " ".join(word.strip(".,;:!?\"'“”()[]*_`") for word in text.casefold().split()).strip()
