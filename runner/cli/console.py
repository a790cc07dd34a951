"""Who may speak, and how: stdout is data that could be piped, stderr is talk.

What user code prints is talk, too: while a command runs, `sys.stdout` is stderr, and only a `Console` has the real one.
Everything is readable without colour, and no terminal's encoding can make a command crash. rich is never imported
here; live progress has its own file.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Literal, TextIO, TypeAlias

import click

Color: TypeAlias = Literal["auto", "always", "never"]

_ASCII = {
    "✓": "ok", "✗": "x", "·": "-", "–": "-", "—": "-", "…": "...", "±": "+/-", "→": "->", "×": "x",
    "≥": ">=", "≤": "<=", "█": "#", "▏": "|", "’": "'", "“": '"', "”": '"', "│": "|", "─": "-",
}  # fmt: skip
"""What a terminal that knows only ASCII or Latin-1 is shown instead of our own signs."""


_PAGE, _NARROWEST = 80, 60


class Style:
    """Named styles. Without colour each returns its text as it is. `width` is how many columns a line may have."""

    def __init__(self, enabled: bool, width: int = _PAGE) -> None:
        self.enabled = enabled
        self.width = width

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.enabled and text else text

    def ok(self, text: str) -> str:
        return self._paint("32", text)

    def warn(self, text: str) -> str:
        return self._paint("33", text)

    def bad(self, text: str) -> str:
        return self._paint("1;31", text)

    def dim(self, text: str) -> str:
        return self._paint("2", text)

    def bold(self, text: str) -> str:
        return self._paint("1", text)

    def name(self, text: str) -> str:
        return self._paint("36", text)


class Console:
    """The two streams of a command. One is made per process; commands get it with `console()`."""

    def __init__(self, color: Color = "auto", quiet: bool = False) -> None:
        self.color: Color = color
        self.quiet = quiet
        self._stdout = sys.stdout
        for stream in (sys.stdout, sys.stderr):
            _make_safe(stream)

    @property
    def data(self) -> Style:
        """Styles for stdout."""
        return Style(_colored(self.color, self._stdout), _width(self._stdout))

    @property
    def talk(self) -> Style:
        """Styles for stderr."""
        return Style(_colored(self.color, sys.stderr), _width(sys.stderr))

    @property
    def live(self) -> bool:
        """True when stderr is a terminal that may be redrawn."""
        return sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and not self.quiet

    def out(self, text: str = "", end: str = "\n") -> None:
        """Print data to stdout."""
        self._stdout.write(text + end)

    def flush(self) -> None:
        """Hand what was printed to whoever reads stdout, now: a script may wait for it."""
        self._stdout.flush()

    def say(self, text: str = "") -> None:
        """Talk on stderr; silent with --quiet."""
        if not self.quiet:
            self.err(text)

    def warn(self, text: str) -> None:
        """A warning on stderr, also with --quiet."""
        self.err(f"{self.talk.warn('warning')}: {text}")

    def err(self, text: str) -> None:
        """A line on stderr, always."""
        self._stdout.flush()  # keeps the two streams in order when both go to one terminal or file
        sys.stderr.write(text + "\n")
        sys.stderr.flush()

    def fail(self, message: str, hint: str = "") -> None:
        """`error: message`, a blank line, `hint: …` on stderr."""
        self.err(f"{self.talk.bad('error')}: {message}")
        if hint:
            self.err(f"\n{self.talk.name('hint')}: {hint}")

    def spelled(self, text: str) -> str:
        """`text` as stderr will show it: what counts columns must count the signs that come out."""
        encoding = sys.stderr.encoding or "utf-8"
        return text.encode(encoding, "osmosis-run").decode(encoding)

    def print_json(self, value: Any, *, indent: int | None = 2) -> None:
        """Print a JSON document to stdout, escaped where the stream could not carry it."""
        from json import dumps

        utf8 = (self._stdout.encoding or "").lower().replace("-", "") == "utf8"
        self.out(dumps(value, ensure_ascii=not utf8, indent=indent))


def console() -> Console:
    """The console of the running command; a fresh one outside of a command."""
    context = click.get_current_context(silent=True)
    found = context.find_object(Console) if context is not None else None
    return found or Console()


def _colored(color: Color, stream: TextIO) -> bool:
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") != "0":
        return True
    return stream.isatty() and os.environ.get("TERM") != "dumb"


def _width(stream: TextIO) -> int:
    """The columns of a terminal, within reason; a page for anything else, so that a file never depends on a window."""
    if not stream.isatty():
        return _PAGE
    try:
        columns = os.get_terminal_size(stream.fileno()).columns
    except OSError:  # a terminal that does not say
        return _PAGE
    return min(_PAGE, max(_NARROWEST, columns))


def _make_safe(stream: Any) -> None:
    """Let `stream` replace what its encoding lacks instead of raising; a stream that cannot be set is left alone."""
    import codecs

    codecs.register_error("osmosis-run", _spell_out)
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="osmosis-run")


def _spell_out(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    spelled = "".join(_ASCII.get(c) or c.encode("ascii", "backslashreplace").decode() for c in text)
    return spelled, error.end
