"""`Redaction`: takes credentials out of a text before anybody reads it.

It knows the secrets of the configuration by their value, and any other credential by the words it stands beside. It is
for a text as its author wrote it: once encoded as JSON, a quote has a backslash and a secret may look like another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

HIDDEN = "***"

_SHORTEST = 6
"""Shorter values are not looked for: hiding every "1" or "test" of a text hides the text, and no secret."""

_NAMES = (
    r"(?:api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret|llm_api_key|controller_api_key|password|passwd"
    r"|secret|authorization)"
)
_BY_NAME = re.compile(rf"(?i)^(?:.*[_-])?{_NAMES}$")
_BY_WORDS = (
    (re.compile(r"(?i)\b(bearer)(\s+|%20)(?!\*\*\*|tokens?\b|keys?\b|auth)[A-Za-z0-9._~+/=:\-]{4,}"), rf"\1\2{HIDDEN}"),
    (re.compile(r"(?i)(\b[a-z][a-z0-9+.\-]{0,20}://)[^\s/@\"'<>]+@"), rf"\1{HIDDEN}@"),
    (
        re.compile(
            rf"(?i)({_NAMES}[\"']?\s*[=:]\s*[\"']?(?:(?:bearer|basic|token)\s+)?)(?!\*\*\*|None\b|null\b)[^\s\"',;&}}\]]{{4,}}"
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"\bsk-[A-Za-z0-9_\-]{12,}"), f"sk-{HIDDEN}"),
)


class Redaction:
    """Call it with a text, get the text without credentials. `secrets` are values to hide wherever they stand."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        known = sorted({secret for secret in secrets if len(secret) >= _SHORTEST}, key=len, reverse=True)
        self._known = re.compile("|".join(re.escape(secret) for secret in known)) if known else None

    def __call__(self, text: str) -> str:
        if self._known is not None:
            text = self._known.sub(HIDDEN, text)
        for pattern, shown in _BY_WORDS:
            text = pattern.sub(shown, text)
        return text

    def within(self, value: Any, depth: int = 0) -> Any:
        """A value that JSON can hold: every text in it redacted, every field hidden that is named like a key."""
        if value is None or isinstance(value, bool | int | float):
            return value
        if depth < 20 and isinstance(value, Mapping):
            return {self(str(name)): self.field(str(name), item, depth + 1) for name, item in value.items()}
        if depth < 20 and isinstance(value, list | tuple | set | frozenset):
            return [self.within(item, depth + 1) for item in value]
        return self(str(value))

    def field(self, name: str, value: Any, depth: int = 0) -> Any:
        """`within`, for the value of the field `name`."""
        return HIDDEN if value and isinstance(value, str) and _BY_NAME.match(name) else self.within(value, depth)
