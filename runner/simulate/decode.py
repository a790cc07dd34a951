"""Bodies off the wire: JSON objects, or the rule that they break."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

from pydantic_core import from_json

Finding: TypeAlias = tuple[str, str]
"""A rule's name and what was seen."""


def json_object(body: bytes) -> tuple[dict[str, Any] | None, list[Finding]]:
    """The object in `body`, None if there is none, and what is wrong with it."""
    findings: list[Finding] = []
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        value, findings = _lenient(body, str(error))
    if isinstance(value, dict):
        return value, findings
    return None, findings or [("not-json", f"the body is a JSON {type(value).__name__}, not an object")]


def _lenient(body: bytes, problem: str) -> tuple[Any, list[Finding]]:
    """What Python's own parser makes of a body that a strict one refuses."""
    constants: list[str] = []
    try:
        value = json.loads(body, parse_constant=constants.append)
    except (ValueError, RecursionError):
        return None, [("not-json", f"{problem}: {shown(body)}")]
    rule = "not-finite" if constants else "lone-surrogate"
    return value, [(rule, f"{problem}: {shown(body)}")]


def shown(value: bytes | str, most: int = 160) -> str:
    """A body for a person: short, one line."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1] + "…"


def bearer_findings(header: str | None, key: str) -> list[Finding]:
    """What is wrong with an Authorization header that should carry `key` ("": none at all)."""
    if not key:
        return [] if header is None else [("bearer-unasked", "an Authorization header came, and no key was given")]
    if header is None:
        return [("bearer-missing", "no Authorization header")]
    if header == f"Bearer {key}":
        return []
    scheme, _, rest = header.partition(" ")
    if scheme.lower() == "bearer" and rest.strip() == key:
        return [("bearer-scheme", f"the scheme was written {header[: len(header) - len(key)]!r}")]
    return [("bearer-wrong", "another key than the one that the start gave")]


def refused(findings: Iterable[Finding]) -> bool:
    """Whether a strict controller answers such a request with 401."""
    return any(rule in ("bearer-missing", "bearer-wrong", "bearer-scheme") for rule, _ in findings)
