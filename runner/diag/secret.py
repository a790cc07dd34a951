"""`redacted`: a finding fit to be shown, without the values of keys that hold secrets.

Works on any text, legal TOML or not: the key that was pasted without quotes is the one that ends in a CI log.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache

from runner.diag.diagnostic import Diagnostic, Source

_KEY = re.compile(r"(?<![\w-])(?P<key>[\w-]++)[\"']?[ \t]*+[=:][ \t]*+")
_VALUE = re.compile(
    r"\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|\"(?:\\.|[^\"\\\n])*\"?|'[^'\n]*'?|[^\s\"'\[{,}\]#][^\n,}\]#]*",
    re.DOTALL,
)
_COUNTS = re.compile(r"(?:\w+_)?tokens|\w*token_ids")
_PLAIN = re.compile(r"[+-]?[\d_.]+|true|false", re.IGNORECASE)
_SHORTEST = 4  # shorter values are not looked for in messages: they would be found in half the words


@lru_cache(maxsize=64)
def secret_ranges(source: Source) -> tuple[tuple[int, int], ...]:
    """The ranges in `source.text` of strings under `*_key`, `*token*`, `*secret*`, `*password*`, without their quotes.

    Keys that count tokens (`max_tokens`) or ask for their ids do not hide anything.
    """
    ranges: list[tuple[int, int]] = []
    for pair in _KEY.finditer(source.text):
        if not _names_secret(pair["key"].lower()) or (ranges and pair.end() < ranges[-1][1]):
            continue
        found = _VALUE.match(source.text, pair.end())
        value = found.group().rstrip() if found else ""
        if not value or _PLAIN.fullmatch(value):
            continue
        start, end = pair.end(), pair.end() + len(value)
        quote = next((one for one in ('"""', "'''", '"', "'") if value.startswith(one)), "")
        start += len(quote)
        if quote and end - start >= len(quote) and value.endswith(quote):
            end -= len(quote)
        if end > start:
            ranges.append((start, end))
    return tuple(ranges)


def _names_secret(key: str) -> bool:
    if _COUNTS.fullmatch(key):
        return False
    holds = any(word in key for word in ("token", "secret", "password", "authorization"))
    return holds or key.endswith(("_key", "-key", "apikey"))


def redacted(finding: Diagnostic) -> Diagnostic:
    """`finding` with every secret of the sources it points into replaced by `…` in its words.

    A fix that would spell a secret is left out: what is shown is for reading, `apply_fixes` takes the report itself.
    """
    sources = {place.source for place in (finding.place, *(place for place, _ in finding.related)) if place}
    values = {source.text[start:end] for source in sources for start, end in secret_ranges(source)}
    secrets = {value for value in values if len(value) >= _SHORTEST}
    secrets |= {word for value in values for word in value.split() if len(word) >= 2 * _SHORTEST}  # `Bearer …`
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
