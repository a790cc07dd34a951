"""`inject`: the arguments that the model never sees, taken from the scope of the call.

A row is handed out as a copy: tools of all attempts share one row, and a tool that edits it must not change the others.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeAlias

from runner.records.failure import ToolError
from runner.tools.tool import ToolScope

Injector: TypeAlias = Callable[[ToolScope], Any]
"""From the scope of a call to the value of one argument. Raises `ToolError` when the scope has no such thing."""

FORMS = ("resource:NAME", "row", "row.COLUMN", "rollout_id", "attempt")


def injector(text: str) -> Injector:
    """The injector that `text` of `[tools.x] inject` names. Raises `ValueError` for a form that is none of `FORMS`."""
    head, colon, name = text.partition(":")
    if head == "resource" and colon and name:
        return lambda scope: _resource(scope, name)
    if text == "row":
        return lambda scope: deepcopy(dict(scope.caller.row))
    if text == "rollout_id":
        return lambda scope: scope.caller.rollout_id
    if text == "attempt":
        return lambda scope: scope.caller.attempt
    head, dot, column = text.partition(".")
    if head == "row" and dot and column:
        return lambda scope: _column(scope, column)
    raise ValueError(f"`{text}` cannot be injected; write one of: {', '.join(FORMS)}")


def _resource(scope: ToolScope, name: str) -> Any:
    try:
        return scope.resources[name]
    except KeyError:
        raise ToolError(f"the resource `{name}` is not open in this rollout", kind="injection") from None


def _column(scope: ToolScope, column: str) -> Any:
    try:
        return deepcopy(scope.caller.row[column])
    except KeyError:
        raise ToolError(f"the row has no column `{column}`, which a tool is to be given", kind="injection") from None
