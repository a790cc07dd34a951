"""Plausible token counts where no tokenizer is: four characters are one token.

Used by the models that invent their answers, so that limits, budgets and prices can be tried without an endpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from runner.records.message import text_of, tool_calls_of

_CHARACTERS = 4


def token_count(text: str) -> int:
    """The characters divided by four, rounded up."""
    return -(-len(text) // _CHARACTERS)


def tokens_of(text: str) -> list[str]:
    """The pieces of four characters that `token_count` counts."""
    return [text[start : start + _CHARACTERS] for start in range(0, len(text), _CHARACTERS)]


def message_text(message: Mapping[str, Any]) -> str:
    """What a message costs: its text, and the names and arguments of its calls."""
    calls = "".join(f"{call.name}{call.arguments}" for call in tool_calls_of(message))
    return text_of(message) + calls


def prompt_text(messages: Iterable[Mapping[str, Any]], tools: Iterable[Any] = ()) -> str:
    """Everything that a prompt holds, as one text."""
    text = "".join([message_text(message) for message in messages])
    return text + "".join(str(tool) for tool in tools) if tools else text
