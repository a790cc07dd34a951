"""`[[tests]]`: every test expects something that can come true, and its script says something."""

from __future__ import annotations

from runner.config.checks.checking import Checking
from runner.config.checks.contents import regex_of
from runner.config.checks.models import check_rules
from runner.config.checks.names import check_offered, offered_tools
from runner.config.names import dotted
from runner.config.tests import RolloutExpect, RolloutTest
from runner.diag.diagnostic import Path


def check_tests(check: Checking) -> None:
    """Each test of a rollout, alone and against the file."""
    first: dict[str, int] = {}
    for index, test in enumerate(check.config.tests):
        path: Path = ("tests", index)
        check_rules(check, (*path, "rules"), test.rules)
        _expect(check, (*path, "expect"), test)
        if isinstance(test.row, int) and check.config.dataset.path is None:
            message = f"`{dotted((*path, 'row'))}` is a place in the dataset, and the file names none"
            check.report("missing-key", (*path, "row"), message, "add `[dataset] path`, or write the row as a table")
        if test.name is not None and test.name in first:
            related = [(check.place(("tests", first[test.name], "name")), "first use")]
            message = f"two of the tests are `{test.name}`"
            check.report("duplicate-name", (*path, "name"), message, "second use", related=related)
        elif test.name is not None:
            first[test.name] = index


def _expect(check: Checking, path: Path, test: RolloutTest) -> None:
    expect = test.expect
    if not expect.model_fields_set:
        keys = ", ".join(f"`{key}`" for key in RolloutExpect.model_fields)
        check.report("one-of", path, "`expect` expects nothing: every rollout would pass", f"add some of {keys}")
    if expect.reward is not None and expect.reward.min is None and expect.reward.max is None:
        where = (*path, "reward")
        check.report("one-of", where, "`reward` takes a number, or `min`, `max` or both", "add one")
    if expect.matches is not None:
        regex_of(check, (*path, "matches"), expect.matches)
    # A script may call a tool that is none, to see what comes of it: then the test may expect that call.
    scripted = {call.name for rule in test.rules for call in rule.tool_calls}
    known = offered_tools(check)
    for index, call in enumerate(expect.tool_calls or ()):
        if call.tool not in scripted:
            where = (*path, "tool_calls", index)
            check_offered(check, (*where, "tool") if check.is_set((*where, "tool")) else where, call.tool, known)
