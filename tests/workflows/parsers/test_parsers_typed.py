"""Written values to what a schema wants, the tools told in words, and formats of the user's own."""

from __future__ import annotations

from typing import Any

import pytest

from runner.records.completion import ToolSpec
from runner.workflows.parsers.manual import sample_arguments, signatures
from runner.workflows.parsers.named import PARSERS, parser_named
from runner.workflows.parsers.own import FunctionParser, ParserMisfit, RegexParser, own_parser
from runner.workflows.parsers.parser import Parsed, WrittenCall
from runner.workflows.parsers.typed import Unbound, arguments_of

SPEC = ToolSpec(
    "search",
    "Searches.\nEverywhere.",
    {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What for."},
            "limit": {"type": "integer"},
            "share": {"type": ["number", "null"]},
            "deep": {"type": "boolean"},
            "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}},
            "zip": {"type": "string"},
            "mode": {"enum": ["fast", 2]},
            "any": {},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "filter": {"type": "object", "properties": {"year": {"type": "integer"}}},
        },
        "required": ["query", "limit"],
        "$defs": {"tag": {"type": "integer"}},
    },
)


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ('search("a, b")', {"query": "a, b"}),
        ('search("x", 3, deep="true")', {"query": "x", "limit": 3, "deep": True}),
        ('search({"query": "x", "limit": "3"})', {"query": "x", "limit": 3}),
        ('search(limit="3", share="1.5", deep=True)', {"limit": 3, "share": 1.5, "deep": True}),
        ('search(share="null", limit="3.0")', {"share": None, "limit": 3}),
        ("search(query=42, zip=01234)", {"query": "42", "zip": "01234"}),
        ('search(query="42")', {"query": "42"}),
        ('search(tags="[1, 2]")', {"tags": [1, 2]}),
        ('search(tags=["1", 2])', {"tags": [1, 2]}),
        ('search(filter={"year": "1999", "other": "1"})', {"filter": {"year": 1999, "other": "1"}}),
        ('search(any="3", either="3", mode="2")', {"any": "3", "either": "3", "mode": "2"}),
        ('search(limit="three", unknown="3")', {"limit": "three", "unknown": "3"}),
    ],
)
def test_values_are_what_the_schema_wants(written: str, arguments: dict[str, Any]) -> None:
    (call,) = parser_named("react-text").parse(f"Action: {written}").calls
    assert arguments_of(call, SPEC) == arguments
    assert {name: type(value) for name, value in arguments_of(call, SPEC).items()} == {
        name: type(value) for name, value in arguments.items()
    }


def test_values_without_a_name_that_nobody_takes() -> None:
    none = ToolSpec("finish", "", {"type": "object"})
    with pytest.raises(Unbound, match="takes no arguments, and was given 1"):
        arguments_of(WrittenCall("finish", positional=("x",)), none)
    with pytest.raises(Unbound, match="no tool"):
        arguments_of(WrittenCall("x", positional=("x",)), None)
    assert arguments_of(WrittenCall("x", {"a": "1"}), None) == {"a": "1"}


def test_tools_are_told_in_words() -> None:
    told = signatures([SPEC])
    assert told.startswith(
        "search(query: string, limit: integer, share?: null or number, deep?: boolean, tags?: array,"
    )
    assert '  Searches.\n  Everywhere.\n  - query: What for.\n  - mode: one of "fast", 2' in told
    assert sample_arguments(SPEC) == {"query": "…", "limit": 1}


@pytest.mark.parametrize("name", PARSERS)
def test_instructions_name_the_tools_and_show_a_form_that_is_read(name: str) -> None:
    parser = parser_named(name)
    told = parser.instructions([SPEC])
    assert "search" in told and "What for." in told
    shown = parser.render(Parsed(parts=(WrittenCall("search", sample_arguments(SPEC)),)))
    assert arguments_of(parser.parse(shown).calls[0], SPEC) == sample_arguments(SPEC)


def test_a_regular_expression_of_the_users() -> None:
    parser = RegexParser(r"\[(?P<name>\w+)(?: (?P<arguments>[^\]]*))?\]")
    parsed = parser.parse('<think>[no]</think>Now [a {"x": 1}] and [b y="2", 3] [c]')
    assert [(type(part).__name__, part.name) for part in parsed.parts] == [
        ("WrittenCall", "a"), ("Fault", "b"), ("WrittenCall", "c")]  # fmt: skip
    assert parsed.calls[0].arguments == {"x": 1}
    assert "`b(…)`" in parsed.faults[0].problem or "value without a name" in parsed.faults[0].problem
    assert parser.parse("done").answer == "done"
    assert "search(query: string" in parser.instructions([SPEC])
    assert parser.instructions([]) == ""


class Own:
    stop = ("END",)

    def parse(self, text: str) -> Parsed:
        return Parsed(answer=text.upper())

    def render(self, parsed: Parsed) -> str:
        return ""

    def instructions(self, specs: Any) -> str:
        return "own"

    def observation(self, answers: Any) -> str:
        return "seen"

    def correction(self, parsed: Parsed) -> str:
        return "no"


@pytest.mark.parametrize(
    ("given", "parts", "answer"),
    [
        ({"tool_name": "a", "tool_args": {"x": 1}}, [("a", {"x": 1})], None),
        ([{"name": "a"}, {"name": "b", "arguments": {}}], [("a", {}), ("b", {})], None),
        (None, [], "text"),
        ("said", [], "said"),
        ({"answer": 42, "thought": "t"}, [], "42"),
        (WrittenCall("a"), [("a", {})], None),
        (Parsed(answer="x"), [], "x"),
    ],
)
def test_a_function_of_the_users(given: Any, parts: list[Any], answer: str | None) -> None:
    parsed = FunctionParser(lambda text: given).parse("text ")
    assert [(call.name, dict(call.arguments)) for call in parsed.calls] == parts
    assert parsed.answer == answer


def test_what_can_be_a_parser() -> None:
    assert own_parser(Own).parse("a").answer == "A"
    assert own_parser(Own()).stop == ("END",)
    assert isinstance(own_parser(lambda text: None), FunctionParser)

    class Half:
        def parse(self, text: str) -> None: ...

    async def later(text: str) -> None: ...

    for wrong, said in ((Half, "lacks `stop`"), (later, "`async`"), (3, "type `int`"), (lambda: 1, "one argument")):
        with pytest.raises(ParserMisfit, match=said):
            own_parser(wrong)
