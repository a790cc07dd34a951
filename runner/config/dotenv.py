"""`read_dotenv`: the settings of a server in the `.env` file beside a workflow file, each with its place.

Everything else in that file is left alone: it is no way for keys, secrets or user code's variables to come in unseen.
A line that is no entry is a finding, an error where it may cost a setting. Findings show a copy of the text without
values, because any of them may be a secret.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from pathlib import Path as FilePath

from runner.config.layers import Spot
from runner.diag.diagnostic import Diagnostic, Place, Report, Severity, Source
from runner.records.quick import quick

_NAME = re.compile(r"[ \t]*(?:export[ \t]+)?(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)[ \t]*(?P<equals>=?)[ \t]*")
_BLANK = re.compile(r"[ \t\r]*(?:#[^\n]*)?(?=\n|\Z)")
_QUOTED = re.compile(r"'(?P<single>[^']*)'|\"(?P<double>(?:[^\"\\]|\\.)*)\"", re.DOTALL)
_BARE = re.compile(r"(?:(?![ \t]#)[^\n])*")
_HARMLESS = re.compile(r"[\"']|\$\{\w+\}")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_SAVE = "save the file as UTF-8"
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
_VARIABLE = re.compile(r"\\.|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^}]*))?\}", re.DOTALL)


@quick
class Entry:
    """One variable of a `.env` file: its value with quotes and escapes undone, and where name and value stand."""

    name: str
    value: str
    spot: Spot


def read_dotenv(
    file: FilePath, shown: str, report: Report, environ: Mapping[str, str], wanted: Callable[[str], bool]
) -> list[Entry]:
    """The entries of `file`, called `shown` in findings, whose names are `wanted`; none when there is no such file.

    `NAME=value`, `export NAME=value`, `'as it is'`, `"with \\n and ${OTHER}"`, comments behind `#`. `${OTHER}` is a
    variable of `environ` or of an earlier entry, `${OTHER:-default}` has a default. What cannot be read is a finding.
    """
    if not file.is_file():  # a folder of that name is somebody's virtual environment
        return []
    text = _text(file, shown, report)
    return [] if text is None else _Reading(Source(shown, text), report, environ, wanted).entries()


def _text(file: FilePath, shown: str, report: Report) -> str | None:
    try:
        raw = file.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        message = f"`{shown}` cannot be read: {reason}"
        report.add(Diagnostic("not-readable", message, _start(shown), severity="warning"))
        return None
    if b"\0" in raw:
        message = f"`{shown}` is a binary file"
        report.add(Diagnostic("bad-encoding", message, _start(shown), helps=(_SAVE,), severity="warning"))
        return None
    try:
        return raw.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        message = f"`{shown}` is not UTF-8: byte 0x{raw[error.start]:02x} on line {line}"
        report.add(Diagnostic("bad-encoding", message, _start(shown), helps=(_SAVE,), severity="warning"))
        return None


def _start(shown: str) -> Place:
    return Place(Source(shown, ""), 0, 0)


class _Reading:
    def __init__(
        self, source: Source, report: Report, environ: Mapping[str, str], wanted: Callable[[str], bool]
    ) -> None:
        self.source = source
        self.text = source.text
        self.report = report
        self.environ = environ
        self.wanted = wanted
        self.known: dict[str, str] = {}

    def entries(self) -> list[Entry]:
        found: list[Entry] = []
        at = 0
        while at < len(self.text):
            blank = _BLANK.match(self.text, at)
            if blank is None:
                entry, end = self.entry(at)
                if entry is not None:
                    self.known[entry.name] = entry.value
                    found += [entry] if self.wanted(entry.name) else []
                at = end
            else:
                at = blank.end()
            at += 1  # the line's end
        return found

    def entry(self, at: int) -> tuple[Entry | None, int]:
        """The entry that begins at `at`, and the offset of the end of its last line."""
        line_end = self.line_end(at)
        name = _NAME.match(self.text, at)
        if name is None:
            start = at + len(self.text[at:line_end]) - len(self.text[at:line_end].lstrip())
            self.bad(start, line_end, "this is no entry", "write `NAME=value`")
            return None, line_end
        if not name["equals"]:
            self.bad(name.start("name"), line_end, "no `=` follows the name", "write `NAME=value`")
            return None, line_end
        value = self.value(name.end(), line_end, self.wanted(name["name"]))
        if isinstance(value, int):
            return None, value
        text, start, end = value
        key = Place(self.source, name.start("name"), name.end("name"))
        return Entry(name["name"], text, Spot(key, Place(self.source, start, end))), self.line_end(end)

    def value(self, start: int, line_end: int, wanted: bool) -> tuple[str, int, int] | int:
        """The value that begins at `start` and the range of its words; a finding and where to go on if it is broken."""
        if self.text[start : start + 1] not in ("'", '"'):
            bare = _BARE.match(self.text, start)
            written = "" if bare is None or self.text[start:line_end].startswith("#") else bare.group().rstrip()
            text = self.expanded(written, start, wanted)
            return line_end if text is None else (text, start, start + len(written))
        quoted = _QUOTED.match(self.text, start)
        if quoted is None:
            self.bad(start, start + 1, "this quote is never closed", "close it", lost=len(self.text))
            return len(self.text)  # what follows may be the rest of the value, which is nobody's business
        if _BLANK.match(self.text, quoted.end()) is None:
            end = self.line_end(quoted.end())
            self.bad(quoted.end(), end, "text follows the closing quote", "put all of it in the quotes")
            return end
        if quoted["single"] is not None:
            return quoted["single"].replace("\r\n", "\n"), start, quoted.end()
        text = self.expanded(quoted["double"], start + 1, wanted, quoted=True)
        return self.line_end(quoted.end()) if text is None else (text.replace("\r\n", "\n"), start, quoted.end())

    def expanded(self, written: str, start: int, wanted: bool, *, quoted: bool = False) -> str | None:
        """`written` with its variables put in and, in double quotes, its escapes undone."""
        parts: list[str] = []
        done = 0
        for found in _VARIABLE.finditer(written):
            parts.append(written[done : found.start()])
            done = found.end()
            if found["name"] is None:
                parts.append(_unescaped(found.group()) if quoted else found.group())
                continue
            known: str | None = self.known.get(found["name"], found["default"])
            value = self.environ.get(found["name"], known)
            if value is None and not wanted:
                return None
            if value is None:
                message = f"the variable `{found['name']}` is not set"
                label = f"`${{{found['name']}:-default}}` has a default, single quotes keep `$` as it is"
                self.bad(start + found.start(), start + found.end(), message, label)
                return None
            parts.append(value)
        return "".join((*parts, written[done:]))

    def line_end(self, at: int) -> int:
        end = self.text.find("\n", at)
        return len(self.text) if end < 0 else end

    def bad(self, start: int, end: int, message: str, label: str, lost: int | None = None) -> None:
        """A finding; an error if a setting stands on its line, or in what is `lost` up to that offset."""
        line = self.text.rfind("\n", 0, start) + 1
        names = re.findall(r"\w+", self.text[line : lost or self.line_end(start)])
        severity: Severity = "error" if any(map(self.wanted, names)) else "warning"
        place = Place(Source(self.source.name, _masked(self.text, start, end)), start, max(end, start + 1))
        self.report.add(Diagnostic("dotenv-syntax", message, place, label, severity=severity))


def _unescaped(pair: str) -> str:
    return _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], found[1]), pair)


def _masked(text: str, start: int, end: int) -> str:
    """`text` with nothing left but names before `=`, and the quote or `${NAME}` between `start` and `end`."""
    masked = "\n".join(_hidden(line) for line in text.split("\n"))
    kept = text[start:end] if _HARMLESS.fullmatch(text, start, end) else masked[start:end]
    return masked[:start] + kept + masked[end:]


def _hidden(line: str) -> str:
    head, equals, value = line.partition("=")
    return head + equals + "…" * len(value) if equals else "…" * len(line)
