"""What an edit does to a text: replace one place, insert after a line. Pure; a fault is a sentence for the model."""

from __future__ import annotations

from runner.tools.builtin.text_file import TextFile

CONTEXT = 3
"""Lines shown before and after an edit."""
_MOST_PLACES = 10


class EditFault(ValueError):
    """An edit that cannot be made. The message says why, and what would work."""


def replaced(file: TextFile, old: str, new: str) -> tuple[TextFile, int]:
    """The file with its one `old` replaced, and the line (from 1) where that begins.

    A text that is written with LF also matches lines that end in CRLF, and is written as they are. Raises `EditFault`
    unless `old` is there exactly once.
    """
    if not old:
        raise EditFault("`old_str` is empty: name the text to replace, or use `insert`")
    if file.newline == "\r\n":
        old, new = _with_newlines(old), _with_newlines(new)
    places = _places(file.text, old)
    if not places:
        raise EditFault(f"`old_str` is not in the file{_near(file.text, old)}. It must match to the letter")
    if len(places) > 1:
        lines = ", ".join(str(_line_of(file.text, each)) for each in places[:_MOST_PLACES])
        more = ", …" if len(places) > _MOST_PLACES else ""
        raise EditFault(f"`old_str` is there {len(places)} times, on lines {lines}{more}: add the lines around yours")
    if old == new:
        raise EditFault("`new_str` is the same as `old_str`: nothing to change")
    at = places[0]
    return file.with_text(file.text[:at] + new + file.text[at + len(old) :]), _line_of(file.text, at)


def inserted(file: TextFile, after: int, new: str) -> tuple[TextFile, int]:
    """The file with `new` as lines of their own after line `after` (0: at the top), and the line where they begin.

    Raises `EditFault` for a line that is not there.
    """
    lines = _lines(file.text)
    if not 0 <= after <= len(lines):
        raise EditFault(f"`insert_line` is {after}, and the file has {len(lines)} lines: give 0 to {len(lines)}")
    newline = file.newline
    new = _with_newlines(new) if newline == "\r\n" else new
    before, behind = "".join(lines[:after]), "".join(lines[after:])
    if before and not before.endswith("\n"):
        before += newline
        # The file ended without a newline, and still does.
        return file.with_text(before + new.removesuffix(newline)), after + 1
    if not new.endswith("\n"):
        new += newline
    return file.with_text(before + new + behind), after + 1


def numbered(text: str, first: int, last: int) -> str:
    """Lines `first` to `last` (from 1, both shown), each behind its number; a last line without an end is one too."""
    lines = text.split("\n")
    if lines and lines[-1] == "":
        lines.pop()
    shown = lines[first - 1 : last]
    return "\n".join(f"{first + index:6}\t{line.removesuffix(chr(13))}" for index, line in enumerate(shown))


def line_count(text: str) -> int:
    """How many lines `numbered` can show."""
    return text.count("\n") + (not text.endswith("\n") and bool(text))


def _with_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def _lines(text: str) -> list[str]:
    """Lines that end in LF only: a lone CR is a sign like any other."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _places(text: str, old: str) -> list[int]:
    """Where `old` begins; places that overlap count, since either could be meant."""
    places = []
    at = text.find(old)
    while at >= 0:
        places.append(at)
        at = text.find(old, at + 1)
    return places


def _line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def _near(text: str, old: str) -> str:
    """Where it would match but for white space: what models get wrong most."""
    wanted = [line.strip() for line in old.strip().splitlines()]
    lines = [line.strip() for line in text.splitlines()]
    for start in range(len(lines) - len(wanted) + 1):
        if wanted and lines[start : start + len(wanted)] == wanted:
            return f"; line {start + 1} is the same but for its white space"
    return ""
