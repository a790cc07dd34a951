"""`approve` to something around a tool: its rules, compiled."""

from __future__ import annotations

from collections.abc import Sequence

from runner.build.site import Site
from runner.build.templates import compile_guess
from runner.config.tools import ApproveRule
from runner.diag.diagnostic import Path
from runner.templates.template import Expression
from runner.tools.approval import ApprovedTool, Rule
from runner.tools.tool import Tool

_NAMES = ("args", "tool", "row")


def approved(site: Site, tool: Tool, rules: Sequence[ApproveRule], path: Path) -> Tool:
    """The tool behind its rules; as it is where there are none."""
    compiled = build_rules(site, rules, path)
    return ApprovedTool(tool, compiled) if compiled else tool


def build_rules(site: Site, rules: Sequence[ApproveRule], path: Path) -> list[Rule]:
    """The compiled rules of the table at `path`; one that is none is a finding and left out."""
    built = [_rule(site, rule, (*path, "approve", index)) for index, rule in enumerate(rules)]
    return [rule for rule in built if rule is not None]


def _rule(site: Site, rule: ApproveRule, path: Path) -> Rule | None:
    if rule.when is None:
        return Rule(rule.action, None, rule.reason or "")
    when = compile_guess(site, Expression, rule.when, (*path, "when"), _NAMES)
    return None if when is None else Rule(rule.action, when, rule.reason or "")
