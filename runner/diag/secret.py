"""`redacted`: a finding fit to be shown, without the values of keys that hold secrets.

Works on any text, legal TOML or not: the key that was pasted without quotes is the one that ends in a CI log.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from runner.diag.diagnostic import Diagnostic, Source

_PAIR = re.compile(
    r"(?P<key>[\w-]*(?:_key|-key|apikey|token|secret|password|authorization)[\w-]*)[\"']?[ \t]*[=:][ \t]*"
    r"(?P<value>\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|\"(?:\\.|[^\"\\\n])*\"?|'[^'\n]*'?|[^\s\"'\[{,}\]#][^\n,}\]#]*)",
    re.IGNORECASE | re.DOTALL,
)
_COUNTS = re.compile(r"(?:\w+_)?tokens|\w*token_ids", re.IGNORECASE)
_PLAIN = re.compile(r"[+-]?[\d_.]+|true|false", re.IGNORECASE)
_SHORTEST = 4  # shorter values are not looked for in messages: they would be found in half the words


@lru_cache(maxsize=64)
def secret_ranges(source: Source) -> tuple[tuple[int, int], ...]:
    """The ranges in `source.text` of strings under `*_key`, `*token*`, `*secret*`, `*password*`, without their quotes.

    Keys that count tokens (`max_tokens`) or ask for their ids do not hide anything.
    """
    ranges = []
    for pair in _PAIR.finditer(source.text):
        key, value = pair["key"].lower(), pair["value"].rstrip()
        if _COUNTS.fullmatch(key) or _PLAIN.fullmatch(value) or not _names_secret(key):
            continue
        start, end = pair.start("value"), pair.start("value") + len(value)
        quote = next((one for one in ('"""', "'''", '"', "'") if value.startswith(one)), "")
        start += len(quote)
        if quote and end - start >= len(quote) and value.endswith(quote):
            end -= len(quote)
        if end > start:
            ranges.append((start, end))
    return tuple(ranges)


def _names_secret(key: str) -> bool:
    holds = any(word in key for word in ("token", "secret", "password", "authorization"))
    return holds or key.endswith(("_key", "-key", "apikey"))


def redacted(finding: Diagnostic) -> Diagnostic:
    """`finding` with every secret of the sources it points into replaced by `…` in its words.

    A fix that would spell a secret is left out: what is shown is for reading, `apply_fixes` takes the report itself.
    """
    sources = {place.source for place in (finding.place, *(place for place, _ in finding.related)) if place}
    secrets = {
        source.text[start:end] for source in sources for start, end in secret_ranges(source) if end - start >= _SHORTEST
    }
    if not secrets:
        return finding
    longest_first = sorted(secrets, key=len, reverse=True)

    def hide(text: str) -> str:
        for secret in longest_first:
            text = text.replace(secret, "…")
        return text

    fix = finding.fix if finding.fix is None or hide(finding.fix.text) == finding.fix.text else None
    return replace(
        finding,
        message=hide(finding.message),
        label=hide(finding.label),
        helps=tuple(map(hide, finding.helps)),
        notes=tuple(map(hide, finding.notes)),
        related=tuple((place, hide(label)) for place, label in finding.related),
        fix=fix,
    )
