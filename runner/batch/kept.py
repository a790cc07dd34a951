"""Which graders a change of the file left alone: their recorded scores stand, and a judge is not paid twice."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from runner.batch.reasons import changes
from runner.config.digest import digest

_NOBODY: frozenset[str] = frozenset()


class Kept:
    """The graders of today that graded the same way before, by the digest of what a record was graded with.

    `before` is the run's manifest as it stood: it remembers the facts of its earlier configurations.
    """

    def __init__(self, facts: Mapping[str, Any], before: Mapping[str, Any] | None, graders: Collection[str]) -> None:
        now = facts.get("grade", {})
        earlier = [*before.get("earlier", []), before["facts"]] if before else []
        self._by_digest = {digest(now): frozenset(graders)}
        for old in earlier:
            before = old.get("grade", {})
            self._by_digest.setdefault(digest(before), unchanged(before, now, graders))

    def since(self, grading: str) -> frozenset[str]:
        """The graders whose scores stand in a record with this `digests.grading`; none if nobody remembers it."""
        return self._by_digest.get(grading, _NOBODY)


def unchanged(before: Mapping[str, Any], now: Mapping[str, Any], graders: Collection[str]) -> frozenset[str]:
    """The graders that no changed fact concerns; one outside [graders] and [reward] (a label, a role) concerns all."""
    touched: set[str] = set()
    for change in changes(before, now):
        section, _, rest = change.key.partition(".")
        if section == "reward":
            continue
        if section != "graders":
            return _NOBODY
        touched.update(name for name in graders if rest.startswith((f"{name}.", f'"{name}".')))
    return frozenset(graders) - touched
