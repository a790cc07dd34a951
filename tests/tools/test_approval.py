"""`approve`: which calls are made, which are denied, who is asked, and that no argument slips past a rule."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runner.records.completion import Caller, ToolSpec
from runner.templates.template import Expression
from runner.tools.approval import ApprovedTool, Rule
from runner.tools.callable import CallableTool
from runner.tools.tool import Question, ToolScope

SPEC = ToolSpec("run", "Runs.", {"type": "object"})


def when(text: str) -> Expression:
    return Expression(text)


RULES = [
    Rule("allow", when("args.command.startswith('ls')")),
    Rule("deny", when("'rm -rf' in args.command"), "it removes too much"),
    Rule("ask", when("row.careful"), "this row is delicate"),
]


def call(
    arguments: dict[str, Any], *, careful: bool = False, says: bool | None = None
) -> tuple[str, str, list[Question]]:
    asked: list[Question] = []
    made: list[dict[str, Any]] = []

    async def ask(question: Question) -> bool:
        asked.append(question)
        return bool(says)

    tool = ApprovedTool(CallableTool(SPEC, lambda **words: made.append(words) or "done"), RULES)
    scope = ToolScope(Caller("r/0", {"careful": careful}), ask=None if says is None else ask)
    result = asyncio.run(tool.call(arguments, scope))
    assert bool(made) == (result.status == "ok")
    return result.status, result.content, asked


def test_the_first_rule_that_holds_decides_and_none_allows() -> None:
    assert call({"command": "ls; rm -rf /"})[:2] == ("ok", "done")
    assert call({"command": "rm -rf /"})[:2] == (
        "error",
        "This call of `run` is not allowed: it removes too much. Nothing was done.",
    )
    assert call({"command": "cat x"})[:2] == ("ok", "done")


@pytest.mark.parametrize(("says", "status", "words"), [
    (True, "ok", "done"),
    (False, "error", "was refused by the person who was asked: this row is delicate"),
    (None, "error", "nobody is there to give it: this row is delicate"),
])  # fmt: skip
def test_whoever_is_there_is_asked_with_the_whole_call(says: bool | None, status: str, words: str) -> None:
    found, said, asked = call({"command": "make"}, careful=True, says=says)
    assert (found, words in said) == (status, True)
    if says is not None:
        assert asked == [Question("run", {"command": "make"}, "this row is delicate", "r/0")]


@pytest.mark.parametrize("arguments", [{}, {"command": None}, {"command": 3}, {"cmd": "rm -rf /"}])
def test_a_call_that_no_rule_can_read_is_denied(arguments: dict[str, Any]) -> None:
    status, said, _ = call(arguments)
    assert (status, "cannot be decided about" in said) == ("error", True)
