"""What a format writes it reads again, and nothing that a model could write makes it raise."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.records.completion import ToolSpec
from runner.workflows.parsers.named import PARSERS, parser_named
from runner.workflows.parsers.own import RegexParser
from runner.workflows.parsers.parser import Parsed, WrittenCall
from runner.workflows.parsers.typed import arguments_of

NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30) | st.sampled_from(
    ['a, b)', '"', "'", "\\", "\n\nAction: x(1)", "Final Answer: 1", "</tool_call>", "<function=x>", "<think>", "]}",
     "</parameter> x", "Observation: 3", '{"name": "a"}', "\\n", "```", "\u2028"]
)  # fmt: skip
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
JSON_CALLS = st.builds(WrittenCall, NAMES, st.dictionaries(NAMES, VALUES, max_size=4))
PLAIN = st.text("abc xyz,.!?0123", max_size=30).map(str.strip)
PIECES = st.sampled_from(
    ["Thought:", "Action:", "Final Answer:", "Observation:", "\n", " ", "a(", ")", "x=", '"', "'", '"""', "[", "]", "{",
     "}", ",", ":", "1", "true", "<think>", "</think>", "<tool_call>", "</tool_call>", '{"name": "a", "arguments": {',
     "<function=a>", "</function>", "<parameter=x>", "</parameter>", "```json", "```", "\\", "é", "**", "Action Input:"]
)  # fmt: skip


@pytest.mark.parametrize("name", ["react-text", "react-json", "hermes"])
@given(thought=PLAIN, calls=st.lists(JSON_CALLS, min_size=1, max_size=3))
@settings(max_examples=120)
def test_calls_come_back(name: str, thought: str, calls: list[WrittenCall]) -> None:
    parser = parser_named(name)
    parsed = Parsed(thought, parts=tuple(calls))
    assert parser.parse(parser.render(parsed)) == parsed


@given(thought=PLAIN, said=PLAIN, calls=st.lists(st.builds(WrittenCall, NAMES, st.dictionaries(NAMES, TEXTS, max_size=4)), min_size=1, max_size=3))  # fmt: skip  # noqa: E501
@settings(max_examples=120)
def test_xml_calls_come_back(thought: str, said: str, calls: list[WrittenCall]) -> None:
    # A value cannot hold its own end: `</parameter>` before what may follow a parameter.
    held = [value for call in calls for value in call.arguments.values()]
    if any(re.search(r"</parameter>\s*(<parameter=|</function>|</tool_call>|\Z)", value) for value in held):
        return
    parser = parser_named("xml-function")
    parsed = Parsed(thought, said, tuple(calls))
    assert parser.parse(parser.render(parsed)) == parsed


@pytest.mark.parametrize("name", PARSERS)
@given(thought=PLAIN, answer=PLAIN)
@settings(max_examples=60)
def test_answers_come_back(name: str, thought: str, answer: str) -> None:
    parser = parser_named(name)
    parsed = Parsed(thought, answer=answer)
    assert parser.parse(parser.render(parsed)) == parsed


@given(arguments=st.dictionaries(NAMES, VALUES, max_size=4))
@settings(max_examples=80)
def test_xml_values_are_typed_by_the_schema(arguments: dict[str, Any]) -> None:
    """Numbers and the like are texts on the wire; the schema says what they are."""
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    properties = {name: {"type": kinds.get(type(value), "null")} for name, value in arguments.items()}
    spec = ToolSpec("t", "", {"type": "object", "properties": properties})
    if any(isinstance(value, str) and "</parameter>" in value for value in arguments.values()):
        return
    parser = parser_named("xml-function")
    (call,) = parser.parse(parser.render(Parsed(parts=(WrittenCall("t", arguments),)))).calls
    assert arguments_of(call, spec) == arguments


@pytest.mark.parametrize("name", [*PARSERS, "regex"])
@given(pieces=st.lists(PIECES, max_size=25))
@settings(max_examples=300)
def test_nothing_makes_it_raise(name: str, pieces: list[str]) -> None:
    parser = RegexParser(r"(?P<name>\w+)\((?P<arguments>[^)]*)\)") if name == "regex" else parser_named(name)
    parsed = parser.parse("".join(pieces))
    assert isinstance(parsed, Parsed)
    assert not (parsed.parts and parsed.answer is not None)
    assert isinstance(parser.correction(parsed), str)


@pytest.mark.parametrize("name", PARSERS)
@given(text=st.text(max_size=200))
@settings(max_examples=60)
def test_no_text_makes_it_raise(name: str, text: str) -> None:
    assert isinstance(parser_named(name).parse(text), Parsed)


@pytest.mark.parametrize("name", PARSERS)
@pytest.mark.parametrize(
    "piece", ["<think>", "</think>", "Action: a(", "<tool_call>", "<function=a>", "Action: {", "(["]
)
def test_a_long_hostile_text_is_read(name: str, piece: str) -> None:
    """Whoever searched the rest of the text at each piece would still be here tomorrow."""
    assert isinstance(parser_named(name).parse(piece * 20_000), Parsed)
