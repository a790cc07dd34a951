"""`read_source`: a file as text that can be pointed into, or one clear finding why not.

Bytes are decoded here and line ends are kept as they are, so that offsets, fixes and what an editor shows agree. A
UTF-8 byte order mark is dropped without a word: editors put it there and TOML gains nothing from a complaint.
"""

from __future__ import annotations

import codecs
from pathlib import Path as FilePath

from runner.diag.diagnostic import Diagnostic, Place, Report, Source
from runner.diag.suggest import nearest

_WIDE = (  # longest first: the mark of UTF-16 begins the one of UTF-32
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
_SAVE = "save the file as UTF-8"


def read_source(path: FilePath, name: str, report: Report) -> Source | None:
    """The text of the file at `path`, called `name` in findings.

    Adds one finding and returns None when it is missing, a folder, not readable (`not-found`, `not-readable`), or not
    UTF-8 text (`bad-encoding`).
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        report.add(_missing(path, name))
    except IsADirectoryError:
        report.add(_folder(path, name))
    except NotADirectoryError:
        parent = next(folder for folder in path.parents if folder.exists())
        report.add(Diagnostic("not-found", f"there is no `{name}`: `{parent.name}` is a file, not a folder"))
    except PermissionError:
        helps = (f"allow it: `chmod u+r {name}`",)
        report.add(Diagnostic("not-readable", f"`{name}` may not be read: permission denied", helps=helps))
    except (OSError, ValueError) as error:  # ValueError: a null byte in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        report.add(Diagnostic("not-readable", f"{name!r} cannot be read: {reason}"))
    else:
        return _decode(raw, name, report)
    return None


def _missing(path: FilePath, name: str) -> Diagnostic:
    message = f"there is no file `{name}`"
    folder = path.parent
    if not folder.is_dir():
        return Diagnostic("not-found", message, notes=(f"there is no folder `{folder}` either",))
    near = nearest(path.name, _names(folder))
    if near:
        return Diagnostic("not-found", message, helps=(f"did you mean `{_beside(name, near)}`?",))
    return _with_tomls(message, folder, name, beside=True)


def _folder(path: FilePath, name: str) -> Diagnostic:
    if (path / "workflow.toml").is_file():
        message = f"`{name}` is a folder, not a file"
        return Diagnostic(
            "not-readable", message, helps=(f"name the file in it: `{FilePath(name) / 'workflow.toml'}`",)
        )
    return _with_tomls(f"`{name}` is a folder without a `workflow.toml`", path, name, beside=False)


def _with_tomls(message: str, folder: FilePath, name: str, *, beside: bool) -> Diagnostic:
    tomls = [entry for entry in _names(folder) if entry.endswith(".toml")]
    if not tomls:
        return Diagnostic("not-found", message, helps=("`osmosis-run init` writes a workflow that works",))
    shown = [_beside(name, entry) if beside else str(FilePath(name) / entry) for entry in tomls[:5]]
    more = f" and {len(tomls) - 5} more" if len(tomls) > 5 else ""
    return Diagnostic(
        "not-found", message, helps=(f"TOML files there: {', '.join(f'`{one}`' for one in shown)}{more}",)
    )


def _names(folder: FilePath) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:  # a folder that may be entered but not listed has no names to offer
        return []


def _beside(name: str, entry: str) -> str:
    return str(FilePath(name).parent / entry)


def _decode(raw: bytes, name: str, report: Report) -> Source | None:
    for mark, encoding in _WIDE:
        if raw.startswith(mark):
            report.add(Diagnostic("bad-encoding", f"`{name}` is {encoding} text, TOML is UTF-8", helps=(_SAVE,)))
            return None
    if b"\0" in raw:
        report.add(_binary(raw, name))
        return None
    raw = raw.removeprefix(codecs.BOM_UTF8)
    try:
        return Source(name, raw.decode())
    except UnicodeDecodeError as error:
        report.add(_not_utf8(raw, error.start, name))
        return None


def _binary(raw: bytes, name: str) -> Diagnostic:
    offset = raw.index(b"\0")
    head = raw[:400]
    if len(head) > 3 and len(head) * 0.4 < head.count(0) < len(head) * 0.6:
        message = f"`{name}` looks like UTF-16 text without a byte order mark, TOML is UTF-8"
        return Diagnostic("bad-encoding", message, helps=(_SAVE,))
    line = raw.count(b"\n", 0, offset) + 1
    notes = (f"byte {offset}, on line {line}, is zero",)
    return Diagnostic("bad-encoding", f"`{name}` is a binary file, not a TOML text", notes=notes)


def _not_utf8(raw: bytes, offset: int, name: str) -> Diagnostic:
    line = raw.count(b"\n", 0, offset) + 1
    message = f"`{name}` is not UTF-8: byte 0x{raw[offset]:02x} at offset {offset}, line {line}"
    if sum(byte < 9 or 13 < byte < 32 for byte in raw[:4000]) > 4:
        return Diagnostic("bad-encoding", message, notes=("it looks like a binary file",))
    start = len(raw[:offset].decode())
    place = Place(Source(name, raw.decode(errors="replace")), start, start + 1)
    guess = bytes([raw[offset]]).decode("cp1252", errors="replace")
    label = f"`{guess}` in Latin-1 or Windows-1252" if guess.isprintable() and guess != "\ufffd" else ""
    return Diagnostic("bad-encoding", message, place, label, (_SAVE,))
