"""Typesetting off, text on: what LaTeX, Markdown and Unicode put around an answer.

Every pass is one linear scan; nothing is evaluated.
"""

from __future__ import annotations

import re
import unicodedata
from operator import itemgetter
from typing import Literal

_BOX = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)
_BARE_BOX = re.compile(r"\\(?:boxed|fbox)\s+([^\s{}$\\]+)")
_FRACTION = re.compile(r"(?<![A-Za-z])\\[dtc]?frac\s*(\{[^{}]*\}|\d)\s*(\{[^{}]*\}|\d)")
_TEXT = re.compile(
    r"\\(?:text(?:bf|it|rm|tt|sf|normal)?|mathrm|mathbf|mathit|mathsf|mbox|operatorname|hbox)\s*\{([^{}]*)\}"
)
_DEGREES = re.compile(r"\^\s*(?:\\circ(?![A-Za-z])|\{\s*\\circ\s*\})|\\degree(?![A-Za-z])|\^°")
_REPLACE = (
    (re.compile(r"\\(?:left|right|displaystyle|bigl?|Bigl?|bigr|Bigr)(?![A-Za-z])"), ""),
    (re.compile(r"\\!|[\u200b\ufeff]"), ""),
    (re.compile(r"\{,\}|\{\\,\}"), ","),
    (re.compile(r"\\(?:,|;|:| |>|quad(?![A-Za-z])|qquad(?![A-Za-z]))"), " "),
    (re.compile(r"\\(?:times|cdot)(?![A-Za-z])"), "×"),
    (re.compile(r"\\approx(?![A-Za-z])"), "≈"),
    (re.compile(r"\\(?:pounds|textsterling)(?![A-Za-z])"), "£"),
    (re.compile(r"\\(?:euro|texteuro)(?![A-Za-z])"), "€"),
    (re.compile(r"\\([%&#])"), r"\1"),
)
_SIGNS = str.maketrans(
    {"−": "-", "–": "-", "—": "-", "‐": "-", "‑": "-", "﹣": "-", "－": "-", "＋": "+", "⁄": "/", "∕": "/"}
    | {"％": "%", "﹪": "%", "．": ".", "，": ",", "＝": "=", "＄": "$", "（": "(", "）": ")"}
    | dict.fromkeys("\u00a0\u2007\u2008\u2009\u200a\u202f\u2002\u2003", " ")
)
_DOLLAR = "\ue000"
_WRAPS = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("**", "**"), ("__", "__"), ("*", "*"), ("`", "`"))
_LAYERS = 16
"""Nobody wraps an answer deeper; unwrapping each layer reads the text once."""
_QUOTES = (('"', '"'), ("'", "'"), ("“", "”"), ("«", "»"))


def boxed(text: str, take: Literal["first", "last"] = "last") -> str | None:
    """What stands in the last complete `\\boxed{...}` or `\\fbox{...}`, braces balanced; also `\\boxed 5`.

    "Last" is the one that opens last, so an inner box wins over the outer one. None if there is none.
    """
    boxes = [(found.start(), found[1].rstrip(".,;")) for found in _BARE_BOX.finditer(text)]
    stack: list[int] = []
    for token in _BOX.finditer(text):
        mark = token[0]
        if mark == "}":
            opened = stack.pop() if stack else -1
            if opened >= 0:
                boxes.append((opened, text[opened : token.start()]))
        elif mark[-1] == "{" and mark != "\\{":
            stack.append(token.end() if len(mark) > 1 else -1)
    if not boxes:
        return None
    return (max if take == "last" else min)(boxes, key=itemgetter(0))[1]


def plain(text: str) -> str:
    """`text` without math delimiters, boxes, emphasis, quotes, spacing commands and closing punctuation.

    `\\frac{a}{b}` becomes `a/b` (with a space before it after a digit), text commands their content, Unicode digits,
    signs and vulgar fractions their ASCII form. Superscripts stay: `5²` is not 52.
    """
    text = _ascii_digits(text.strip().translate(_SIGNS))
    if "\\" in text or "{" in text:
        text = _commands(text)
    text = _unwrap(text)
    text = _FRACTION.sub(_as_ratio, text) if "frac" in text else text
    return text.replace(_DOLLAR, "$").strip()


def _commands(text: str) -> str:
    text = text.replace("\\$", _DOLLAR)
    text = _DEGREES.sub("°", text)
    for pattern, replacement in _REPLACE:
        text = pattern.sub(replacement, text)
    return _TEXT.sub(r" \1 ", text)


def _as_ratio(found: re.Match[str]) -> str:
    over, under = (part.strip("{} ") for part in found.groups())
    return f" {over}/{under}"


def _ascii_digits(text: str) -> str:
    if text.isascii():
        return text
    return "".join(character if character.isascii() else _ascii_digit(character) for character in text)


def _ascii_digit(character: str) -> str:
    if (digit := unicodedata.decimal(character, None)) is not None:
        return str(digit)
    if unicodedata.decomposition(character).startswith("<fraction>"):
        return " " + unicodedata.normalize("NFKC", character).replace("⁄", "/")
    return character


def _unwrap(text: str) -> str:
    """Take off, from outside in, what says nothing about the value."""
    for _ in range(_LAYERS):
        before = text
        text = text.strip().rstrip(".,;:!").strip()
        for opening, closing in (*_WRAPS, *_QUOTES):
            inner = text[len(opening) : len(text) - len(closing)]
            if len(text) > len(opening) + len(closing) and text.startswith(opening) and text.endswith(closing):
                text = inner
        text = _unbox(_unbrace(text))
        if text == before:
            break
    return text


def _unbox(text: str) -> str:
    if not text.startswith(("\\boxed", "\\fbox")) or not text.endswith("}"):
        return text
    opening = text.find("{")
    return text[opening + 1 : -1] if opening > 0 and _closes_at_end(text[opening:]) else text


def _unbrace(text: str) -> str:
    if text[:1] in ("{", "(") and text[-1:] in ("}", ")") and _closes_at_end(text):
        return text[1:-1]
    return text


def _closes_at_end(text: str) -> bool:
    depth = 0
    for index, character in enumerate(text):
        depth += (character in "{(") - (character in "})")
        if depth == 0:
            return index == len(text) - 1
    return False
