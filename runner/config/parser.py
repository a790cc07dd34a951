"""`[workflow] parser`: the text format in which the model writes its tool calls."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BeforeValidator
from pydantic_core import PydanticCustomError

from runner.config.reference import Reference
from runner.config.section import Section, wrong_choice

ParserName: TypeAlias = Literal["react-text", "react-json", "hermes", "xml-function"]
PARSERS: tuple[ParserName, ...] = ("react-text", "react-json", "hermes", "xml-function")
WAYS = ("format", "call", "regex")
REGEX_GROUPS = ("name", "arguments")


class ParserSection(Section):
    """The text format of tool calls: its name, or a function of yours, or a regular expression."""

    format: ParserName | None = None
    """`react-text` (`Action: tool(a=1)`), `react-json` (`Action: {"name", "parameters"}`), `hermes`
    (`<tool_call>{"name", "arguments"}</tool_call>`), `xml-function` (`<function=NAME><parameter=K>V</parameter>`)."""
    call: Reference | None = None
    """A function from the text of an answer to its calls, or a class with the methods of `Parser`."""
    regex: str | None = None
    """Each match is a call: its groups `name`, and `arguments` as JSON or `a=1, b="x"`. Without a match, it is the
    final answer."""
    instructions: bool = True
    """Whether the system prompt is told the tools and the format. `false` where your own prompt does that."""


def _parser(value: Any) -> Any:
    if isinstance(value, ParserSection):
        return value
    if isinstance(value, str):
        if value in PARSERS:
            return {"format": value}
        if ":" in value:
            return {"call": Reference.parse(value)}
        raise PydanticCustomError("unknown_kind", "a parser", {"noun": "parser", "word": value, "kinds": PARSERS})
    if isinstance(value, dict):
        found = [key for key in WAYS if key in value]
        if len(found) != 1:
            raise PydanticCustomError("exactly_one", "one key", {"keys": WAYS, "found": found})
        return value
    raise wrong_choice("a parser's name, a reference or a table")


Parser = Annotated[ParserSection | None, BeforeValidator(lambda value: None if value is None else _parser(value))]
