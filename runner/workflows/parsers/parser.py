"""`Parser`: a text format in which a model writes its tool calls and its final answer.

A parser is pure: the same text gives the same `Parsed`, and nothing that a model writes makes it raise. What is almost
a call is a `Fault`, which goes back to the model; it is never taken for an answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from runner.records.completion import ToolSpec
from runner.records.message import ToolCall
from runner.records.quick import quick

_NOTHING: Mapping[str, str] = MappingProxyType({})


@quick
class WrittenCall:
    """A call as a text wrote it. `arguments` are JSON values; `positional` those that were given without a name.

    `source` holds, by argument, the text of values that stood there without quotes: `zip=01234` may mean a text.
    """

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    positional: tuple[Any, ...] = ()
    source: Mapping[str, str] = field(default_factory=lambda: _NOTHING, compare=False)


@quick
class Fault:
    """Something that was meant as a call and is none. `problem` is a sentence to the model; `text` what it wrote."""

    problem: str
    text: str = ""
    name: str = ""


@quick
class Parsed:
    """An answer of the model, read.

    `thought` is what it thought aloud, `text` what it said beside its calls, `parts` its calls and what was meant as
    one, in order. `answer` is its final answer, None where it gave none. `ignored` tells the model what was not read.
    """

    thought: str = ""
    text: str = ""
    parts: tuple[WrittenCall | Fault, ...] = ()
    answer: str | None = None
    ignored: str = ""

    @property
    def calls(self) -> tuple[WrittenCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, WrittenCall))

    @property
    def faults(self) -> tuple[Fault, ...]:
        return tuple(part for part in self.parts if isinstance(part, Fault))


@runtime_checkable
class Parser(Protocol):
    """A text format."""

    @property
    def stop(self) -> tuple[str, ...]:
        """Where the model is to stop by itself and may not: sent as stop sequences, beside those of `[sampling]`."""
        ...

    def parse(self, text: str) -> Parsed:
        """Read an answer. Never raises."""
        ...

    def render(self, parsed: Parsed) -> str:
        """The text that `parse` reads as `parsed`, one without faults."""
        ...

    def instructions(self, specs: Sequence[ToolSpec]) -> str:
        """What the system prompt says of the tools and of the format; empty for a format that somebody else tells."""
        ...

    def observation(self, answers: Sequence[tuple[ToolCall, str]]) -> str:
        """The user message that brings the results of calls, in their order."""
        ...

    def correction(self, parsed: Parsed) -> str:
        """What to say to an answer in which there was neither a call nor a final answer."""
        ...
