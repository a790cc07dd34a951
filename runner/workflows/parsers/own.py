"""The user's own format: a regular expression, or a function from text to calls.

Only the tools are told in the system prompt: how a call is written, the file's own prompt says.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runner.records.completion import ToolSpec
from runner.records.message import ToolCall
from runner.workflows.parsers.json_calls import calls_in
from runner.workflows.parsers.literals import Unreadable, read_call
from runner.workflows.parsers.manual import signatures
from runner.workflows.parsers.parser import Fault, Parsed, Parser, WrittenCall
from runner.workflows.parsers.tagged import read_tagged
from runner.workflows.parsers.thinking import Found, walk

GROUPS = ("name", "arguments")
"""The named groups that a regular expression has; without `arguments`, its tools are called with none."""


class ParserMisfit(Exception):
    """What a reference names cannot be a parser, or gave what is no answer. The message says why."""


class _Told:
    """What both have: the tools told as signatures, results as plain text."""

    stop: tuple[str, ...] = ()

    def render(self, parsed: Parsed) -> str:
        raise NotImplementedError("only a format that we know can be written")

    def instructions(self, specs: Sequence[ToolSpec]) -> str:
        return f"You have these tools:\n\n{signatures(specs)}" if specs else ""

    def observation(self, answers: Sequence[tuple[ToolCall, str]]) -> str:
        return "\n\n".join(f"Result of {call.name or 'the call'}:\n{content}" for call, content in answers)

    def correction(self, parsed: Parsed) -> str:
        return parsed.ignored or "Your answer holds neither a call nor a final answer. Write one of them."


class RegexParser(_Told):
    """Each match of `pattern` is a call: its group `name`, and `arguments` as JSON or as `a=1, b="x"`.

    An answer without a match is the final answer.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern)

    def parse(self, text: str) -> Parsed:
        return read_tagged(walk(text, self._pattern, _read_match))


class FunctionParser(_Told):
    """`function(text)` gives a call as a dictionary (`name` or `tool_name`, `arguments` or `tool_args`), a list of
    them, a `Parsed`, or the final answer: a text, a dictionary with `answer`, or None for the text as it is.
    """

    def __init__(self, function: Callable[[str], Any]) -> None:
        self._function = function

    def parse(self, text: str) -> Parsed:
        """Raises what the function raises, and `ParserMisfit` for anything else that it gives."""
        given = self._function(text)
        if isinstance(given, Parsed):
            return given
        if given is None or isinstance(given, str):
            return Parsed(answer=(text if given is None else given).strip())
        if isinstance(given, WrittenCall | Fault):
            return Parsed(parts=(given,))
        if isinstance(given, list | tuple) and given:
            return _together([_one(each) for each in given])
        return _one(given)


def own_parser(target: Any) -> Parser:
    """The parser that a reference names: one with the methods of `Parser`, a class of such, or a function.

    Raises `ParserMisfit`.
    """
    if inspect.isclass(target):
        try:
            target = target()
        except Exception as error:
            raise ParserMisfit(f"`{target.__name__}()` raised {type(error).__name__}: {error}") from error
    if isinstance(target, Parser):
        return target
    if hasattr(target, "parse"):
        missing = [name for name in ("stop", "render", "instructions", "observation", "correction")
                   if not hasattr(target, name)]  # fmt: skip
        raise ParserMisfit(f"it has `parse`, and lacks {', '.join(f'`{name}`' for name in missing)}")
    if inspect.iscoroutinefunction(target):
        raise ParserMisfit("it is `async`: a parser is a plain function of a text")
    if not callable(target):
        raise ParserMisfit(f"it is of type `{type(target).__name__}`, not a function of a text")
    try:
        inspect.signature(target).bind("")
    except (TypeError, ValueError):
        raise ParserMisfit("it is called with one argument, the text of an answer, and does not take that") from None
    return FunctionParser(target)


def _read_match(text: str, match: re.Match[str], found: Found) -> int:
    groups = match.groupdict()
    name = (groups.get("name") or "").strip()
    found.add(_call(name, (groups.get("arguments") or "").strip(), match[0]))
    return match.end()


def _call(name: str, arguments: str, text: str) -> WrittenCall | Fault:
    if not name:
        return Fault("The call names no tool.", text)
    if not arguments:
        return WrittenCall(name)
    if arguments[0] == "{":
        try:
            value = json.loads(arguments, strict=False)
        except (ValueError, RecursionError) as error:
            return Fault(f"The arguments are no valid JSON: {error}.", text, name)
        return WrittenCall(name, value)
    written = f"_({arguments})"
    try:
        call, end = read_call(written, 0)
    except Unreadable as error:
        return Fault(str(error).replace("`_(", f"`{name}("), text, name)
    if end < len(written):
        return Fault("The arguments end before the call does.", text, name)
    return WrittenCall(name, call.arguments, call.positional, call.source)


def _one(given: Any) -> Parsed:
    if isinstance(given, Parsed):
        return given
    if isinstance(given, WrittenCall | Fault):
        return Parsed(parts=(given,))
    if not isinstance(given, Mapping):
        raise ParserMisfit(f"the parser gave {type(given).__name__}, not a dictionary, a list of them, or a text")
    thought = next((str(given[key]) for key in ("thought", "thought_content") if given.get(key)), "")
    for key in ("answer", "final_answer"):
        if given.get(key) is not None:
            return Parsed(thought, answer=str(given[key]))
    call = {key: value for key, value in given.items() if key not in ("thought", "thought_content")}
    return Parsed(thought, parts=tuple(calls_in(call, repr(given)[:200])))


def _together(given: Sequence[Parsed]) -> Parsed:
    thought = "\n".join(each.thought for each in given if each.thought)
    parts = tuple(part for each in given for part in each.parts)
    answer = next((each.answer for each in given if each.answer is not None), None)
    return Parsed(thought, parts=parts, answer=None if parts else answer)
