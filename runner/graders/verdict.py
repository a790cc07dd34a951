"""A judge's reply, read as a verdict: tolerant of code fences and thinking aloud, strict about meaning."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from runner.graders.criterion import Criterion, Opinion

_THOUGHT = re.compile(r"\A\s*<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL)
_FENCED = re.compile(r"\A```[a-zA-Z]*[ \t]*\n(.*)\n[ \t]*```\Z", re.DOTALL)


class MalformedVerdict(ValueError):
    """A reply that is no complete verdict. The message is for the judge, and for people."""


def parse_verdict(reply: str, criteria: Sequence[Criterion]) -> dict[str, Opinion]:
    """One opinion for each criterion, by id.

    Raises `MalformedVerdict` when the reply is not exactly one JSON object, when a criterion is missing, doubled or
    unknown, when a verdict is not on its scale, or when a reason is missing.
    """
    given = _entries(reply)
    opinions: dict[str, Opinion] = {}
    known = {each.id: each for each in criteria}
    for entry in given:
        name = entry.get("id")
        if not isinstance(name, str) or name not in known:
            raise MalformedVerdict(f"it judges {name!r}, which is no criterion; they are {', '.join(known)}")
        if name in opinions:
            raise MalformedVerdict(f"it judges {name!r} twice")
        opinions[name] = _opinion(known[name], entry)
    missing = [name for name in known if name not in opinions]
    if missing:
        raise MalformedVerdict(f"it does not judge {', '.join(missing)}")
    return opinions


def _entries(reply: str) -> list[Mapping[str, Any]]:
    text = _THOUGHT.sub("", reply).strip()
    if not text:
        raise MalformedVerdict("it is empty")
    if fenced := _FENCED.match(text):
        text = fenced[1]
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except MalformedVerdict:
        raise
    except (ValueError, RecursionError) as error:
        raise MalformedVerdict(f"it is not JSON ({str(error)[:100]})") from error
    entries = found.get("criteria") if isinstance(found, Mapping) else None
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise MalformedVerdict('it is not of the form {"criteria": [{"id": ..., "reason": ..., "verdict": ...}]}')
    return entries


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    # Python keeps the last of two equal keys; a verdict that says two things says nothing.
    table = dict(pairs)
    if len(table) < len(pairs):
        raise MalformedVerdict("a key stands in it twice")
    return table


def _no_constant(name: str) -> Any:
    raise MalformedVerdict(f"{name} is not JSON")


def _opinion(criterion: Criterion, entry: Mapping[str, Any]) -> Opinion:
    reason = entry.get("reason")
    if not isinstance(reason, str) or not reason.strip():
        raise MalformedVerdict(f"it gives no reason for {criterion.id}")
    if "verdict" not in entry:
        raise MalformedVerdict(f"it gives no verdict for {criterion.id}")
    said = entry["verdict"]
    value = criterion.value_of(said)
    if value is None:
        shown = json.dumps(said)[:60]
        raise MalformedVerdict(f"the verdict for {criterion.id} must be {criterion.scale()}, found {shown}")
    return Opinion(said, value, reason.strip())
