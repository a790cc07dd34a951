"""`Redaction`: takes credentials out of a text before anybody reads it.

It knows the secrets of the configuration by their value, and any other credential by the words it stands beside.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

HIDDEN = "***"

_SHORTEST = 6
"""Shorter values are not looked for: hiding every "1" or "test" of a text hides the text, and no secret."""

_BY_WORDS = (
    (re.compile(r"(?i)\b(bearer|basic)(\s+|%20)(?!\*\*\*)[A-Za-z0-9._~+/=:\-]{4,}"), rf"\1\2{HIDDEN}"),
    (re.compile(r"(?i)(\b[a-z][a-z0-9+.\-]{0,20}://)[^\s/@\"'<>]+@"), rf"\1{HIDDEN}@"),
    (
        re.compile(
            r"(?i)((?:api[_-]?key|access[_-]?token|auth[_-]?token|client[_-]?secret|x-api-key|password|passwd|secret)"
            r"[\"']?\s*[=:]\s*[\"']?)(?!\*\*\*|None\b|null\b)[^\s\"',;&}\]]{4,}"
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(?i)(authorization[\"']?\s*[=:]\s*[\"']?)(?!bearer|basic|\*\*\*)[^\s\"',;}\]]{4,}"), rf"\1{HIDDEN}"),
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
