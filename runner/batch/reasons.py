"""Which key changed between two runs, and at which line: the words for "re-run because ...".

Facts are flat: a dotted key and its value, in the parts "result", "grade" and "operation".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from runner.config.digest import digest

_NAMED = re.compile(r"(?:tools|roles|graders|resources|sandboxes|mcp)\.(?:\"[^\"]*\"|[^.]+)(?=\.)")
"""The named table that a fact is of."""


@dataclass(frozen=True, slots=True)
class Change:
    """One key that has another value than before; `before` or `after` is None where `absent` says so."""

    key: str
    before: Any
    after: Any
    how: str
    """changed, added or removed."""

    def to_json(self) -> dict[str, Any]:
        return {"key": self.key, "how": self.how, "before": self.before, "after": self.after}


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """The keys that differ, those of `after` in its order, then what was removed."""
    found = [
        Change(key, before.get(key), value, "changed" if key in before else "added")
        for key, value in after.items()
        if key not in before or _differ(before[key], value)
    ]
    found += [Change(key, value, None, "removed") for key, value in before.items() if key not in after]
    return found


def told(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Change]:
    """The changes as people are told of them: a key without a value is none, a named table that came or went is one.

    The value of such a table is its keys with their values.
    """
    whole = _tables(before) ^ _tables(after)
    found: dict[str, Change] = {}
    tables: dict[str, dict[str, Any]] = {}
    for change in changes(before, after):
        if change.before is change.after is None:
            continue
        match = _NAMED.match(change.key)
        if match is None or match[0] not in whole:
            found[change.key] = change
            continue
        removed = change.how == "removed"
        table, value = match[0], change.before if removed else change.after
        known = tables.setdefault(table, {})
        known[change.key[match.end() + 1 :]] = value
        found[table] = Change(table, known if removed else None, None if removed else known, change.how)
    return list(found.values())


def _tables(facts: Mapping[str, Any]) -> set[str]:
    return {match[0] for key in facts if (match := _NAMED.match(key))}


def _differ(one: Any, other: Any) -> bool:
    """True where a digest tells them apart: 1, 1.0 and true are three values."""
    return bool(one != other) or digest({"": one}) != digest({"": other})


def reason(changed: list[Change], place: Callable[[str], str]) -> str:
    """`sampling.temperature changed (workflow.toml:14:1)`; `place` gives a key's place or an empty string."""
    words = [_one(change, place) for change in changed[:3]]
    if len(changed) > 3:
        words.append(f"{len(changed) - 3} more changed")
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def _one(change: Change, place: Callable[[str], str]) -> str:
    how = {"changed": "changed", "added": "was added", "removed": "was removed"}[change.how]
    where = "" if change.how == "removed" else place(change.key)
    return f"{change.key} {how} ({where})" if where else f"{change.key} {how}"


def placer(config: Any) -> Callable[[str], str]:
    """A function from a dotted key to `file:line:column`, or to an empty string where nobody set it."""
    from runner.config.layers import split_key

    def place(key: str) -> str:
        path = split_key(key.partition(" (")[0]) or ()
        while path:
            found = config.origins.value_place(path)
            if found is not None:
                return str(found)
            path = path[:-1] if len(path) > 2 else ()
        return ""

    return place
