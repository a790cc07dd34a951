"""`ApprovedTool`: a tool whose calls are allowed, denied or asked about by their arguments, before anything runs.

The first rule that holds decides; a call that no rule is about is allowed. What is denied is an answer that the model
can act on, and counts as an error of the call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from runner.records.completion import ToolSpec
from runner.templates.template import Expression, TemplateError
from runner.tools.tool import Question, Tool, ToolResult, ToolScope

Decision: TypeAlias = Literal["allow", "deny", "ask"]


@dataclass(frozen=True, slots=True)
class Rule:
    """Decides on the calls that `when` holds for (over `args`, `tool` and `row`; None: all). `reason` is for people."""

    action: Decision
    when: Expression | None = None
    reason: str = ""


class ApprovedTool:
    """`tool` behind `rules`. Where a rule asks and nobody is there to be asked, the call is denied."""

    def __init__(self, tool: Tool, rules: Sequence[Rule]) -> None:
        self._tool = tool
        self._rules = tuple(rules)

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    async def call(self, arguments: dict[str, Any], scope: ToolScope) -> ToolResult:
        """As the tool, if the call may be made."""
        try:
            rule = self._rule(arguments, scope.caller.row)
        except TemplateError as error:
            # Whoever chooses the arguments must not choose that no rule holds.
            return self._denied(f"cannot be decided about ({error}), so it is not allowed")
        if rule is None or rule.action == "allow":
            return await self._tool.call(arguments, scope)
        why = f": {rule.reason}" if rule.reason else ""
        if rule.action == "deny":
            return self._denied(f"is not allowed{why}")
        if scope.ask is None:
            return self._denied(f"needs somebody's consent, and nobody is there to give it{why}")
        question = Question(self._tool.spec.name, arguments, rule.reason, scope.caller.rollout_id)
        if await scope.ask(question):
            return await self._tool.call(arguments, scope)
        return self._denied(f"was refused by the person who was asked{why}")

    def _rule(self, arguments: Mapping[str, Any], row: Mapping[str, Any]) -> Rule | None:
        names = {"args": arguments, "tool": self._tool.spec.name, "row": row}
        return next((rule for rule in self._rules if rule.when is None or rule.when.evaluate(**names)), None)

    def _denied(self, what: str) -> ToolResult:
        return ToolResult(f"This call of `{self._tool.spec.name}` {what}. Nothing was done.", "error")
