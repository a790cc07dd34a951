"""What a docstring says about a function and its parameters: Google, NumPy and reST forms.

The three are told apart by their marks, not by a setting: a docstring that mixes them is read as far as it goes.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import field

from runner.records.quick import quick

_GOOGLE = re.compile(
    r"^(?:args|arguments|parameters|params|keyword args|keyword arguments|other parameters):\s*$", re.I
)
_HEADING = re.compile(r"^[A-Z][A-Za-z ]*:\s*$")
_GOOGLE_ITEM = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*(?:\([^)]*\)[^)]*)*\))?\s*:\s*(.*)$")
_NUMPY = re.compile(r"^(?:other )?parameters\s*$", re.I)
_RULE = re.compile(r"^-{3,}\s*$")
_NUMPY_ITEM = re.compile(r"^(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_REST_ITEM = re.compile(r"^:(?:param|parameter|arg|argument|key|keyword)\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$")
_REST_FIELD = re.compile(r"^:\w+.*:")


@quick
class Docstring:
    """`summary` is the first paragraph on one line; `parameters` the description of each parameter, on one line."""

    summary: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def read(text: str | None) -> Docstring:
    """What `text` says; an empty `Docstring` for None."""
    lines = inspect.cleandoc(text or "").splitlines()
    parameters = {**_google(lines), **_numpy(lines), **_rest(lines)}
    return Docstring(_summary(lines), {name: said for name, said in parameters.items() if said})


def _summary(lines: list[str]) -> str:
    first: list[str] = []
    for position, line in enumerate(lines):
        following = lines[position + 1] if position + 1 < len(lines) else ""
        if not line.strip() or _GOOGLE.match(line) or _RULE.match(following) or _REST_FIELD.match(line):
            break
        first.append(line.strip())
    return " ".join(first)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _google(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    inside, margin, current = False, None, None
    for line in lines:
        if not line.strip():
            continue
        if _indent(line) == 0:
            inside, margin, current = bool(_GOOGLE.match(line)), None, None
            continue
        if not inside:
            continue
        margin = _indent(line) if margin is None else margin
        item = _GOOGLE_ITEM.match(line.strip()) if _indent(line) <= margin else None
        if item:
            current = found.setdefault(item[1], [])
            current.append(item[2].strip())
        elif current is not None:
            current.append(line.strip())
    return _joined(found)


def _numpy(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    inside, names = False, list[str]()
    for position, line in enumerate(lines):
        following = lines[position + 1] if position + 1 < len(lines) else ""
        if _RULE.match(following):
            inside, names = bool(_NUMPY.match(line)), []
        elif not inside or not line.strip() or _RULE.match(line):
            continue
        elif _indent(line) == 0:
            item = _NUMPY_ITEM.match(line)
            names = [name.strip().lstrip("*") for name in item[1].split(",")] if item else []
        else:
            for name in names:
                found.setdefault(name, []).append(line.strip())
    return _joined(found)


def _rest(lines: list[str]) -> dict[str, str]:
    found: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        item = _REST_ITEM.match(line.strip())
        if item:
            current = found.setdefault(item[1], [])
            current.append(item[2].strip())
        elif not line.strip() or _REST_FIELD.match(line.strip()):
            current = None
        elif current is not None:
            current.append(line.strip())
    return _joined(found)


def _joined(found: dict[str, list[str]]) -> dict[str, str]:
    return {name: " ".join(part for part in parts if part) for name, parts in found.items()}
