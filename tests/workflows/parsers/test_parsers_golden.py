"""What each format makes of what models write: the good, the nearly good, and the hostile."""

from __future__ import annotations

from typing import Any

import pytest

from runner.workflows.parsers.named import PARSERS, parser_named
from runner.workflows.parsers.parser import Fault, Parsed, WrittenCall

REACT_TEXT = [
    ('Thought: look\nAction: search(query="a, b", limit=3)', [("search", {"query": "a, b", "limit": 3})]),
    ("Action: f(x=[1, [2, {'a': (3)}]], y={\"k\": [true, None]})",
     [("f", {"x": [1, [2, {"a": "(3)"}]], "y": {"k": [True, None]}})]),
    ("Action: a(x=1)\nAction: b(y=2)", [("a", {"x": 1}), ("b", {"y": 2})]),
    ("Action: a(x=1), b(y=2)\nc()", [("a", {"x": 1}), ("b", {"y": 2}), ("c", {})]),
    ("**Thought:** so\n**Action:** `finish()`", [("finish", {})]),
    ("action: finish", [("finish", {})]),
    ('Action: w(text="Action: b(1)\nFinal Answer: 2")', [("w", {"text": "Action: b(1)\nFinal Answer: 2"})]),
    ('Action: w(text="""one\n"two" three""", n=-1.5)', [("w", {"text": 'one\n"two" three', "n": -1.5})]),
    (r'Action: w(re="\d+\\n\"q\"", u="\u00e9\ud83d\ude00")', [("w", {"re": '\\d+\\n"q"', "u": "é😀"})]),
    ("Action: w(city=New York, when=12:30)", [("w", {"city": "New York", "when": "12:30"})]),
    ("Action: calc(expr=(2+3)*4)", [("calc", {"expr": "(2+3)*4"})]),
    ("Action: w(s='it\\'s', t=\"日本語 🙂\")", [("w", {"s": "it's", "t": "日本語 🙂"})]),
    ("```\nAction: a(x=1)\n```", [("a", {"x": 1})]),
    ("Action:\n```python\na(x=1)\n```\nI will wait.", [("a", {"x": 1})]),
    ("<think>Action: no(1)</think>Action: yes(x=1)", [("yes", {"x": 1})]),
    ("Action: no(x=1)\n</think>\nAction: yes(x=1)", [("yes", {"x": 1})]),
    ('Action: w(t="a <think> b </think> c")', [("w", {"t": "a <think> b </think> c"})]),
    ("Action: a(x=1)\nObservation: 3\nAction: b(y=1)", [("a", {"x": 1})]),
    ("Action: ns/tool-x(a=1)", [("ns/tool-x", {"a": 1})]),
]  # fmt: skip

REACT_JSON = [
    ('Thought: t\nAction: {"name": "a", "parameters": {"x": [1, "}"]}}', [("a", {"x": [1, "}"]})]),
    ('Action:\n```json\n{"name": "a", "arguments": {"x": "a, b"}}\n```\nObservation: 1', [("a", {"x": "a, b"})]),
    ('{"tool_name": "a", "tool_args": {"x": 1}}', [("a", {"x": 1})]),
    ('I call it.\n```json\n{"tool": "a", "input": {"x": 1}}\n```', [("a", {"x": 1})]),
    ('Action: search\nAction Input: {"q": "x"}', [("search", {"q": "x"})]),
    ('Action: [{"name": "a", "args": {}}, {"name": "b", "args": {"y": null}}]', [("a", {}), ("b", {"y": None})]),
    ('Action: {"name": "a", "parameters": {}}\nAction: {"name": "b", "parameters": {}}', [("a", {}), ("b", {})]),
    ('Action: {"name": "w", "parameters": {"t": "one\ntwo"}}', [("w", {"t": "one\ntwo"})]),
    ('Action: {"name": "w", "parameters": {"t": "Action: {\\"name\\": \\"b\\"}\\nFinal Answer: 1 é"}}',
     [("w", {"t": 'Action: {"name": "b"}\nFinal Answer: 1 é'})]),
    ('<think>Action: {"name": "no"}</think>\nAction: {"name": "yes", "parameters": {}}', [("yes", {})]),
    ('Action: {"type": "function", "function": {"name": "a", "arguments": "{\\"x\\": 1}"}}', [("a", {"x": 1})]),
]  # fmt: skip

HERMES = [
    ('Let me.\n<tool_call>\n{"name": "a", "arguments": {"x": "a, b"}}\n</tool_call>', [("a", {"x": "a, b"})]),
    ('<tool_call>{"name": "w", "arguments": {"t": "</tool_call><think>"}}</tool_call>',
     [("w", {"t": "</tool_call><think>"})]),
    ('<tool_call>{"name": "a", "arguments": {}}</tool_call>\n<tool_call>{"name": "b", "arguments": {}}</tool_call>',
     [("a", {}), ("b", {})]),
    ('<tool_call>[{"name": "a", "arguments": {}}, {"name": "b"}]</tool_call>', [("a", {}), ("b", {})]),
    ('<tool_call>\n```json\n{"name": "a", "arguments": {}}\n```\n</tool_call> done', [("a", {})]),
    ('<tool_call>{"name": "a", "arguments": {"x": {"y": [1, {"z": 2}]}}}', [("a", {"x": {"y": [1, {"z": 2}]}})]),
    ('<think>\n<tool_call>{"name": "no"}</tool_call>\n</think>\n<tool_call>{"name": "yes"}</tool_call>', [("yes", {})]),
    ('<tool_call>{"name": "no"}</tool_call></think><tool_call>{"name": "yes"}</tool_call>', [("yes", {})]),
    ('<tool_call>{"name": "w", "arguments": {"t": "a\nb 🙂"}}</tool_call>', [("w", {"t": "a\nb 🙂"})]),
    ('<tool_call>{"name": "a", "arguments": "{\\"x\\": 1}"}</tool_call>', [("a", {"x": 1})]),
]  # fmt: skip

XML = [
    ("I look.\n<function=view><parameter=path>a, b.py</parameter></function>", [("view", {"path": "a, b.py"})]),
    ("<tool_call>\n<function=w>\n<parameter=text>\none\n\ntwo\n</parameter>\n</function>\n</tool_call>",
     [("w", {"text": "one\n\ntwo"})]),
    ("<function=w><parameter=t><function=x><parameter=y></parameter> z</parameter></function>",
     [("w", {"t": "<function=x><parameter=y></parameter> z"})]),
    ("<function=a></function><function=b></function>", [("a", {}), ("b", {})]),
    ("<function=a><parameter=x>1</parameter>", [("a", {"x": "1"})]),
    ("<think><function=no></function></think><function=yes></function>", [("yes", {})]),
    ("<function=w><parameter=t>  é <think> [1, {2}] </parameter></function>", [("w", {"t": "  é <think> [1, {2}] "})]),
    ("<function=w><parameter=t>\n\n  keep\n\n</parameter></function>", [("w", {"t": "\n  keep\n"})]),
    ("<function=w><parameter=t>\r\na\nb\r\n</parameter></function>", [("w", {"t": "a\nb"})]),
]  # fmt: skip

CALLS = {"react-text": REACT_TEXT, "react-json": REACT_JSON, "hermes": HERMES, "xml-function": XML}


@pytest.mark.parametrize(("name", "text", "calls"), [(n, t, c) for n, cases in CALLS.items() for t, c in cases])
def test_calls(name: str, text: str, calls: list[tuple[str, dict[str, Any]]]) -> None:
    parsed = parser_named(name).parse(text)
    assert parsed.faults == ()
    assert [(call.name, call.arguments) for call in parsed.calls] == calls
    assert parsed.answer is None


ANSWERS = [
    ("react-text", "Thought: so\nFinal Answer: 42", "42"),
    ("react-text", "Action: Final Answer: 42\nand more\n", "42\nand more"),
    ("react-text", "**Final Answer:** f(x) = {1, 2}", "f(x) = {1, 2}"),
    ("react-text", "<think>Final Answer: 1</think>\nFinal Answer: 2", "2"),
    ("react-json", 'Final Answer: {"a": 1}', '{"a": 1}'),
    ("react-json", 'Action: {"action": "Final Answer", "action_input": "42"}', "42"),
    ("hermes", "<think>6 * 7</think>\n\nIt is 42.", "It is 42."),
    ("hermes", "", ""),
    ("xml-function", "It is <b>42</b>.", "It is <b>42</b>."),
]


@pytest.mark.parametrize(("name", "text", "answer"), ANSWERS)
def test_answers(name: str, text: str, answer: str) -> None:
    parsed = parser_named(name).parse(text)
    assert (parsed.parts, parsed.answer) == ((), answer)


FAULTS = [
    ("react-text", 'Action: a(x="1"', "a", "never closed"),
    ("react-text", 'Action: a(x="say "hi"")', "a", 'A " inside a text is written as \\"'),
    ("react-text", "Action: a(x=1, x=2)", "a", "gives `x` twice"),
    ("react-text", "Action: a(x=1, 2)", "a", "without a name"),
    ("react-text", "Action: a(x=[1, 2)", "a", "never closed"),
    ("react-text", "Action: a(x=)", "a", "a value"),
    ("react-text", "Action: Search for cats", "Search", "no `(`"),
    ("react-text", "Action: " + "a(x=" + "[" * 500, "a", ""),
    ("react-json", 'Action: {"name": "a", x}', "a", "no valid JSON"),
    ("react-json", 'Action: {"parameters": {}}', "", "names no tool"),
    ("react-json", 'Action: {"name": "a", "x": 1}', "a", "belong into an object"),
    ("react-json", '```json\n{"name": "a", "parameters": {\n```', "a", "no valid JSON"),
    ("hermes", '<tool_call>{"name": "a", "arguments": {}</tool_call>', "a", "no valid JSON"),
    ("hermes", '<tool_call>{"name": "a", "arguments": {}}}</tool_call>', "a", "</tool_call> must follow"),
    ("hermes", "<tool_call>a(1)</tool_call>", "", "no valid JSON"),
    ("hermes", "<tool_call>", "", "no JSON"),
    ("hermes", "It is 42.</tool_call>", "", "closes nothing"),
    ("hermes", '<tool_call>{"name": "a", "arguments": {}, "parameters": {}}</tool_call>', "a", "twice"),
    ("hermes", "<tool_call>" + "[" * 100_000, "", "nested too deeply"),
    ("hermes", '<tool_call>{"name": "a", "arguments": {"n": ' + "9" * 5000 + "}}</tool_call>", "a", "too many digits"),
    ("xml-function", "<function=a><parameter=x>1", "a", "never closed"),
    ("xml-function", "<function=a>x</function>", "a", "Expected <parameter=…>"),
    ("xml-function", '<tool_call>{"name": "a"}</tool_call>', "", "holds no <function=NAME>"),
    ("xml-function", "<function=a><parameter=x>1</parameter><parameter=x>2</parameter></function>", "a", "twice"),
]


@pytest.mark.parametrize(("name", "text", "tool", "problem"), FAULTS)
def test_what_is_almost_a_call_is_a_fault_and_no_answer(name: str, text: str, tool: str, problem: str) -> None:
    parsed = parser_named(name).parse(text)
    assert parsed.answer is None
    assert len(parsed.parts) == 1
    (fault,) = parsed.faults
    assert fault.name == (tool if "digits" not in problem else fault.name)
    assert problem in fault.problem
    assert len(fault.problem) < 400


@pytest.mark.parametrize("name", PARSERS)
def test_thinking_that_never_ends_is_told(name: str) -> None:
    parsed = parser_named(name).parse("<think>Final Answer: 1 <tool_call> <function=a>")
    assert (parsed.parts, parsed.answer) == ((), None)
    assert "</think>" in parser_named(name).correction(parsed)


@pytest.mark.parametrize("name", ["react-text", "react-json"])
def test_neither_action_nor_answer_is_no_answer(name: str) -> None:
    parser = parser_named(name)
    parsed = parser.parse("Thought: The answer: 42, I think.")
    assert (parsed.parts, parsed.answer) == ((), None)
    assert "Final Answer" in parser.correction(parsed)


def test_an_answer_beside_a_call_waits_and_an_invented_result_is_told() -> None:
    parser = parser_named("react-text")
    early = parser.parse("Action: a(x=1)\nFinal Answer: 3")
    assert (early.answer, len(early.calls)) == (None, 1)
    assert "answer when you have seen its result" in early.ignored
    assert "Observation" in parser.parse("Action: a(x=1)\nObservation: 3\nFinal Answer: 3").ignored


def test_a_good_call_beside_a_bad_one_keeps_its_place() -> None:
    parsed = parser_named("hermes").parse(
        '<tool_call>{"name": "a"}</tool_call><tool_call>{oops}</tool_call><tool_call>{"name": "b"}</tool_call>'
    )
    assert [type(part) for part in parsed.parts] == [WrittenCall, Fault, WrittenCall]


def test_an_observation_numbers_several_results() -> None:
    from runner.records.message import ToolCall

    two = [(ToolCall("1", "a", "{}"), "one"), (ToolCall("2", "b", "{}"), "two")]
    assert parser_named("react-text").observation(two[:1]) == "Observation: one"
    assert parser_named("react-json").observation(two) == "Observation 1 (a): one\n\nObservation 2 (b): two"
    assert parser_named("hermes").observation(two[:1]) == "<tool_response>\none\n</tool_response>"
    assert Parsed().calls == ()
