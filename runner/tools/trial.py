"""`[[tools.x.tests]]`: golden calls of a tool, checked without a model.

A trial goes the way of a model's call: its arguments are read by the tool's schema, so a bad call can be expected too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from runner.records.failure import RolloutError
from runner.tools.arguments import Arguments, BadCall
from runner.tools.tool import Tool, ToolResult, ToolScope

WORDS = ("contains", "equals", "matches", "error")
"""What a table in `expect` may say; any other table is the value itself."""

_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Trial:
    """Call the tool with `args` and expect `expect`; `row` is the row that is injected, if the trial has its own.

    `expect` is a value (the text of the output, or what it holds as JSON), or one of `{contains = text or list of
    texts}`, `{equals = value}`, `{matches = regular expression}`, `{error = text in the error, or true for any}`.
    """

    args: Mapping[str, Any] = field(default_factory=dict)
    expect: Any = None
    row: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TrialResult:
    """`message` says what was expected and found when it did not pass; `result` is what the tool answered."""

    passed: bool
    message: str
    result: ToolResult
    seconds: float


async def try_tool(tool: Tool, trial: Trial, scope: ToolScope) -> TrialResult:
    """Run one trial. Raises only cancellation."""
    if trial.row is not None:
        scope = replace(scope, caller=replace(scope.caller, row=trial.row))
    started = perf_counter()
    result = await _played(tool, trial, scope)
    seconds = perf_counter() - started
    message = _verdict(trial.expect, result)
    return TrialResult(not message, message, result, seconds)


async def _played(tool: Tool, trial: Trial, scope: ToolScope) -> ToolResult:
    try:
        arguments = Arguments(tool.spec.parameters).read(json.dumps(dict(trial.args), default=str))
        return await tool.call(arguments, scope)
    except BadCall as error:
        return ToolResult(error.sentence, "bad_call")
    except RolloutError as error:
        return ToolResult(str(error), "error", where=error.where)


def _verdict(expect: Any, result: ToolResult) -> str:
    """Why `result` is not what was expected; empty when it is."""
    word, wanted = _word(expect)
    if word == "error":
        return _error_verdict(wanted, result)
    if result.status != "ok":
        return f"expected an answer, found {result.status}: {_cut(result.content)}"
    if word == "contains":
        texts = [wanted] if isinstance(wanted, str) else list(wanted)
        absent = [str(text) for text in texts if str(text) not in result.content]
        return f"expected the output to contain {_json(absent[0])}, found {_shown(result)}" if absent else ""
    if word == "matches":
        matched = re.search(str(wanted), result.content)
        return "" if matched else f"expected the output to match {_json(wanted)}, found {_shown(result)}"
    return "" if _equal(wanted, result.content) else f"expected {_cut(_json(wanted))}, found {_shown(result)}"


def _word(expect: Any) -> tuple[str, Any]:
    if isinstance(expect, Mapping) and len(expect) == 1:
        (word, wanted), *_ = expect.items()
        if word in WORDS:
            return word, wanted
    return "equals", expect


def _error_verdict(wanted: Any, result: ToolResult) -> str:
    if wanted is False:
        return "" if result.status == "ok" else f"expected no error, found {result.status}: {_cut(result.content)}"
    if result.status == "ok":
        return f"expected an error, found {_shown(result)}"
    if wanted is True or str(wanted) in result.content:
        return ""
    return f"expected an error with {_json(wanted)}, found {_cut(result.content)}"


def _equal(wanted: Any, content: str) -> bool:
    if isinstance(wanted, str) and wanted == content:
        return True
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        return wanted is None and not content
    return _same(wanted, found)


def _same(wanted: Any, found: Any) -> bool:
    """Equal as JSON: in Python `1 == True`, in a golden test it must not be."""
    if isinstance(wanted, bool) or isinstance(found, bool):
        return wanted is found
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return wanted.keys() == found.keys() and all(_same(value, found[name]) for name, value in wanted.items())
    if isinstance(wanted, (list, tuple)) and isinstance(found, list):
        return len(wanted) == len(found) and all(map(_same, wanted, found))
    return bool(wanted == found)


def _shown(result: ToolResult) -> str:
    return _cut(_json(result.content))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
