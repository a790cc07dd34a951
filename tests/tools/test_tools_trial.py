"""Golden calls of a tool."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runner.records.completion import Caller
from runner.tools.callable import CallableTool
from runner.tools.injection import injector
from runner.tools.signature import derive
from runner.tools.tool import ToolScope
from runner.tools.trial import Trial, TrialResult, try_tool


def stock(item: str, row: Any, count: int = 1) -> Any:
    if item == "none":
        raise KeyError(item)
    if item == "text":
        return "refunds take 30 days"
    return {"item": item, "count": count, "city": row.get("city"), "open": True}


def attempt(expect: Any, row: Any = None, **args: Any) -> TrialResult:
    tool = CallableTool(derive(stock, injected=["row"]), stock, inject={"row": injector("row")})
    return asyncio.run(try_tool(tool, Trial(args, expect, row), ToolScope(Caller("trial"))))


PEN = {"item": "pen", "count": 1, "city": None, "open": True}


@pytest.mark.parametrize(
    ("expect", "args"),
    [
        (PEN, {"item": "pen"}),
        ({"equals": PEN}, {"item": "pen"}),
        ({"contains": "30 days"}, {"item": "text"}),
        ({"contains": ["30", "refunds"]}, {"item": "text"}),
        ({"matches": r"\d+ days$"}, {"item": "text"}),
        ("refunds take 30 days", {"item": "text"}),
        ({"error": True}, {"item": "none"}),
        ({"error": "KeyError"}, {"item": "none"}),
        ({"error": "`item` must be a string, found 3"}, {"item": 3}),
        ({"error": False}, {"item": "pen"}),
    ],
)
def test_expectations_that_hold(expect: Any, args: Any) -> None:
    result = attempt(expect, **args)
    assert result.passed, result.message
    assert result.message == ""


def test_a_trial_may_bring_its_row() -> None:
    assert attempt({**PEN, "city": "Oslo"}, {"city": "Oslo"}, item="pen").passed


@pytest.mark.parametrize(
    ("expect", "args", "message"),
    [
        ("x", {"item": "text"}, 'expected "x", found "refunds take 30 days"'),
        ({**PEN, "open": 1}, {"item": "pen"}, "expected {"),
        ({"contains": ["30", "31"]}, {"item": "text"}, 'expected the output to contain "31", found "refunds'),
        ({"matches": "^days"}, {"item": "text"}, 'expected the output to match "^days", found "refunds'),
        ({"error": True}, {"item": "text"}, 'expected an error, found "refunds take 30 days"'),
        ({"error": "Value"}, {"item": "none"}, "expected an error with \"Value\", found KeyError: 'none'"),
        ("x", {"item": "none"}, "expected an answer, found error: KeyError: 'none'"),
        ("x", {}, "expected an answer, found bad_call: Bad arguments: `item` is missing"),
    ],
)
def test_expectations_that_fail_say_what_was_found(expect: Any, args: Any, message: str) -> None:
    result = attempt(expect, **args)
    assert not result.passed
    assert result.message.startswith(message)
