"""What is wrong with a value that is not TOML: text without quotes, other languages' words, strings gone astray."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from runner.diag.diagnostic import Diagnostic, Fix, Place
from runner.diag.trouble import Trouble

VALUE_STOP = re.compile(r"[ \t]*(?:[,\]}#\r\n]|\Z)")
_WORDS = {
    **dict.fromkeys(("True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"), "true"),
    **dict.fromkeys(("False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"), "false"),
    **dict.fromkeys(("NaN", "NAN"), "nan"),
    **dict.fromkeys(("Infinity", "Inf", "INF"), "inf"),
}
_NOTHING = ("None", "none", "null", "NULL", "Null", "nil", "undefined", "~")
_UNIT = re.compile(r"[+-]?[\d_.]+\s*(?:ms|[smhd]|min|sec|[KMGT]i?B|B|USD|EUR|%)(?:[\d.]+[smh])*", re.I)
_NUMBERS = (
    (re.compile(r"([+-]?)\.(\d+)"), "a number has a digit before its point", r"\g<1>0.\2"),
    (re.compile(r"([+-]?\d+)\."), "a number has a digit after its point", r"\1.0"),
    (re.compile(r"([+-]?)0+(\d+(?:\.\d+)?)"), "a number may not begin with zeros", r"\1\2"),
    (re.compile(r"([+-]?\d+)\.[eE]([+-]?\d+)"), "a number has a digit after its point", r"\1.0e\2"),
)
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?![\d,])")
_ESCAPES = 'btnfr"\\'


def explain_string(trouble: Trouble) -> Diagnostic | None:
    """A string that never ends, or holds what its quotes do not allow."""
    start = trouble.spans.lost
    if trouble.what.startswith(("Unescaped '\\'", "Invalid hex", "Escaped character")):
        return _backslash(trouble)
    if start is None or trouble.text[start : start + 1] not in ('"', "'"):
        return None
    quote = trouble.text[start : start + 3]
    if quote in ('"""', "'''"):
        if trouble.at >= len(trouble.text) or "Unterminated" in trouble.what or "Expected" in trouble.what:
            return trouble.finding("a text of several lines is not closed", start, start + 3, f"no `{quote}` follows")
        return _illegal(trouble)
    if trouble.what.startswith(("Unterminated", "Illegal character", "Found invalid", 'Expected "\'"')):
        character = trouble.text[trouble.at : trouble.at + 1]
        if character in ("", "\n", "\r"):
            end = start + len(trouble.text[start:].split("\n", 1)[0].rstrip())
            advice = f"text over several lines stands between `{quote[0] * 3}`"
            return trouble.finding("a string is not closed", start, end, f"write `{quote[0]}` at its end", help=advice)
        return _illegal(trouble)
    return None


def _illegal(trouble: Trouble) -> Diagnostic:
    code = ord(trouble.text[trouble.at])
    label = f'write `\\u{code:04X}` in a "…" string, or remove it'
    return trouble.finding(
        f"a string may not hold the control character U+{code:04X}", trouble.at, trouble.at + 1, label
    )


def _backslash(trouble: Trouble) -> Diagnostic:
    """A backslash that begins no escape: nearly always a regular expression or a Windows path in double quotes."""
    slash = trouble.text.rfind("\\", 0, trouble.at)
    escape = trouble.text[slash : slash + 2]
    start = _string_start(trouble, slash)
    triple = trouble.text.startswith('"""', start)
    message, label = f'`{escape}` is no escape in a "…" string', f"write `\\{escape}`"
    if escape[1:] in ("u", "U"):
        message = f"`{escape}` wants {4 if escape[1] == 'u' else 8} hexadecimal digits of a character"
    whole = re.compile(r'"((?:\\.|[^"\\\n])*)"').match(trouble.text, start)
    if triple or whole is None or "'" in whole[1]:
        quotes = "'" if whole is None else "'''"
        advice = f"or use {quotes} quotes, in which a backslash is only a backslash"
        return trouble.finding(message, slash, slash + 2, label, help=advice)
    raw = f"'{whole[1]}'"
    plain = not any(one[1] in _ESCAPES for one in re.findall(r"\\.", whole[1], re.DOTALL))
    advice = f"use single quotes, in which a backslash is only a backslash: `{raw}`"
    found = trouble.finding(message, slash, slash + 2, label, help=advice)
    fix = Fix(Place(trouble.source, start, whole.end()), raw)
    return replace(found, fix=fix) if plain else found


def _string_start(trouble: Trouble, slash: int) -> int:
    """Where the string around `slash` begins."""
    lost = trouble.spans.lost
    if lost is not None and lost <= slash and trouble.text[lost : lost + 1] == '"':
        return lost
    starts = [start for start, end in trouble.spans.values.values() if start <= slash < end]
    return max(starts, default=trouble.line_start)


def explain_value(trouble: Trouble) -> Diagnostic | None:
    """Whatever stands where a value should, from its first character on."""
    start = _value_start(trouble)
    token = _token(trouble, start)
    if not token:
        return _no_value(trouble, start)
    end = start + len(token)
    if token.startswith("="):
        return trouble.finding("one `=` too many", start, start + 1, "remove it", put="")
    if token in _WORDS:
        put = _WORDS[token]
        return trouble.finding(f"TOML writes `{put}`, not `{token}`", start, end, f"write `{put}`", put=put)
    if token in _NOTHING:
        return trouble.finding(f"TOML has no `{token}`", start, end, "remove the line: a key left out has its default")
    if token.startswith("("):
        return trouble.finding("TOML has no `(…)`", start, end, "a list stands between `[` and `]`")
    if token[0] in "\"'":
        return _after_string(trouble, start)
    if "Invalid date" in trouble.what or re.match(r"\d{4}-\d\d-\d\d|\d\d:\d\d", token):
        return trouble.finding(f"`{token}` is no date or time", start, end, "correct it, or put quotes around it")
    return _number(trouble, start, token) or _unquoted(trouble, start, token)


def _value_start(trouble: Trouble) -> int:
    """The first character of the value at or behind which the parser stopped."""
    if trouble.what.startswith("Invalid value"):
        return trouble.at
    starts = [start for start, end in trouble.spans.values.values() if start <= trouble.at and end >= trouble.at - 1]
    starts += [start for start, _ in trouble.spans.values.values() if trouble.line_start <= start <= trouble.at]
    return max(starts, default=trouble.at)


def _token(trouble: Trouble, start: int) -> str:
    """The text that was meant as one value: to a separator if a bracket is open, else to the end of the line."""
    end = trouble.text.find("\n", start)
    rest = trouble.text[start : end if end >= 0 else len(trouble.text)]
    if trouble.spans.open:
        return re.split(r"[,\]}]|\s#", rest)[0].strip()
    return re.split(r"(?:^|\s)#", rest)[0].strip()


def _no_value(trouble: Trouble, start: int) -> Diagnostic | None:
    before = trouble.text[trouble.line_start : start]
    key = re.search(r"([A-Za-z0-9_.\"-]+)\s*=\s*$", before)
    if key:
        place = trouble.line_start + key.start(1)
        label = "write a value, or remove the line"
        return trouble.finding(f"`{key[1]}` has no value", place, place + len(key[1]), label)
    if trouble.spans.open and trouble.text[start : start + 1] == ",":
        return trouble.finding("a value is missing before the comma", start, start + 1, "remove one comma", put="")
    return None


def _after_string(trouble: Trouble, start: int) -> Diagnostic:
    quote = trouble.text[start]
    line_end = trouble.line_end
    message = f"the string ends at its second `{quote}`, and more follows"
    inner = trouble.text[start + 1 : line_end]
    other = "'" if quote == '"' else '"'
    if inner.endswith(quote) and len(inner) > 1:
        advice = f"a `{quote}` inside a string: put {other} quotes around the whole"
        if quote == '"':
            advice += ', or write `\\"`'
        return trouble.finding(message, trouble.at, line_end, help=advice)
    return trouble.finding(message, trouble.at, line_end, "remove this, or begin it with `#` to make it a comment")


def _number(trouble: Trouble, start: int, token: str) -> Diagnostic | None:
    end = start + len(token)
    thousands = _THOUSANDS.match(trouble.text, start)
    if thousands and not trouble.spans.open:
        put = thousands[0].replace(",", "_")
        return trouble.finding("a number has no commas", *thousands.span(), f"write `{put}`", put=put)
    for pattern, message, repair in _NUMBERS:
        if pattern.fullmatch(token):
            put = pattern.sub(repair, token)
            return trouble.finding(message, start, end, f"write `{put}`", put=put)
    if _UNIT.fullmatch(token):
        put = json.dumps(token)
        return trouble.finding("a value with a unit is a string", start, end, f"put quotes around it: `{put}`", put=put)
    return None


def _unquoted(trouble: Trouble, start: int, token: str) -> Diagnostic:
    end = start + len(token)
    if '"' in token or "'" in token or "\\" in token:
        return trouble.finding("text needs quotes", start, end, "put quotes around it")
    put = f'"{token}"'
    return trouble.finding("text needs quotes", start, end, f"write `{put}`", put=put)
