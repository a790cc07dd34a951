"""`Reply`: what an LLM function of the third seed returns, a text, with the completion that it came from."""

from __future__ import annotations

from typing import Any

from runner.records.completion import Completion
from runner.records.message import text_of


class Reply(str):
    """The text of an answer. `completion` has all of it: tool calls, log-probabilities, usage, finish reason."""

    __slots__ = ("completion",)

    completion: Completion

    def __new__(cls, completion: Completion) -> Reply:
        made = super().__new__(cls, text_of(completion.message))
        made.completion = completion
        return made


def completion_of(value: Any) -> Completion | None:
    """The completion behind a reply; None for any other text."""
    return value.completion if isinstance(value, Reply) else None
