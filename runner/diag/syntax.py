"""`explain_syntax`: what a TOML syntax error means, in our words, at its place.

`tomllib` says where it stopped; `diag.span` says what was open there. From both, each function below recognises one
family of slips and returns a finding or None; the first that recognises wins, and the last accepts all.
"""

from __future__ import annotations

import re
import unicodedata

from runner.diag.bad_value import VALUE_STOP, explain_string, explain_value
from runner.diag.diagnostic import Diagnostic, Source
from runner.diag.duplicate import explain_duplicate
from runner.diag.span import walk
from runner.diag.trouble import Trouble

_WHERE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)$")
_STATEMENT = re.compile(
    r"[ \t]*(?:[A-Za-z0-9_.-]+|\"[^\"\n]*\")[ \t]*=(?!=)|\[\[?[\w.\-\"']+\]\]?[ \t]*(?:#.*|\r)?$", re.M
)
_DUPLICATE = ("Cannot declare", "Cannot overwrite", "Cannot mutate", "Cannot redefine", "Duplicate inline")
_TYPOGRAPHIC = "“”„‟«»‘’‚`"


def explain_syntax(source: Source, error: Exception) -> Diagnostic:
    """One `syntax` or `duplicate-key` finding for the `error` that `tomllib.loads(source.text)` raised."""
    trouble = _locate(source, error)
    if trouble.what.startswith(_DUPLICATE):
        found = explain_duplicate(source, walk(source.text), trouble.at)
        if found:
            return found
    for explain in (_too_much, _marks, explain_string, _bracket, _key, _header, _after_statement, explain_value):
        found = explain(trouble)
        if found:
            return found
    said = trouble.what[:1].lower() + trouble.what[1:]
    return trouble.finding(f"not TOML: {said}", trouble.at, trouble.at + 1)


def _locate(source: Source, error: Exception) -> Trouble:
    text = str(error)
    where = _WHERE.search(text)
    if where is None:
        return Trouble(source, text, 0)
    if where[1] is None:
        return Trouble(source, text[: where.start()], len(source.text))
    at = 0
    for _ in range(int(where[1]) - 1):
        at = source.text.index("\n", at) + 1
    return Trouble(source, text[: where.start()], at + int(where[2]) - 1)


def _too_much(trouble: Trouble) -> Diagnostic | None:
    """What `tomllib` gives up on without a place: endless integers, bottomless nesting."""
    if "integer string conversion" in trouble.what:
        digits = re.search(r"[0-9_]{4000,}", trouble.text)
        if digits:
            return trouble.finding("an integer of more than 4,300 digits", *digits.span(), "too long")
    if "recursion" in trouble.what:
        start = max(trouble.spans.open[:1], default=0)
        return trouble.finding("arrays or tables are nested too deeply to read", start, start + 1, "the outermost")
    return None


def _marks(trouble: Trouble) -> Diagnostic | None:
    """Things that are no part of any statement: conflict markers, other languages' comments, strange characters."""
    line = trouble.text[trouble.line_start : trouble.line_end]
    if re.match(r"<{7}|={7}|>{7}", line):
        start = trouble.line_start
        return trouble.finding("a merge conflict is still in the file", start, trouble.line_end, "resolve it")
    if re.match(r"[ \t]*(?:- |---)", line) and trouble.what.startswith("Expected '='"):
        return trouble.finding("this is not TOML", trouble.line_start, trouble.line_end, "this reads like YAML")
    if "'\\r'" in trouble.what:
        return trouble.finding("a carriage return without a line feed", trouble.at, trouble.at + 1, "remove it", put="")
    if not trouble.rest:
        return None
    character = trouble.rest[0]
    if trouble.what.startswith(("Invalid statement", "Expected newline")) and trouble.rest.startswith(
        ("//", ";", "/*", "--")
    ):
        mark = re.match(r"/[/*]|;|-+", trouble.rest)
        width = mark.end() if mark else 1
        if trouble.rest != ";" and not trouble.rest.startswith("---"):
            return trouble.finding(
                "a comment begins with `#`", trouble.at, trouble.at + width, "write `#` here", put="#"
            )
        if trouble.rest == ";":
            return trouble.finding("a line ends without a `;`", trouble.at, trouble.at + 1, "remove it", put="")
        return trouble.finding("TOML has no `---` lines", trouble.at, trouble.line_end, "remove it", put="")
    if unicodedata.category(character) in ("Zs", "Cf", "Cc") and character not in " \t\r\n":
        label = f"U+{ord(character):04X} {unicodedata.name(character, 'CONTROL CHARACTER')}"
        return trouble.finding(
            "an invisible character", trouble.at, trouble.at + 1, label, help="delete it or type a space"
        )
    if character in _TYPOGRAPHIC and not trouble.what.startswith("Illegal"):
        return _typographic(trouble)
    return None


def _typographic(trouble: Trouble) -> Diagnostic:
    name = "a backtick" if trouble.rest[0] == "`" else f"the typographic quote {trouble.rest[0]}"
    message = f"{name} does not quote text in TOML"
    quoted = re.match(rf"[{_TYPOGRAPHIC}]([^{_TYPOGRAPHIC}\"\n\\]*)[{_TYPOGRAPHIC}]", trouble.rest)
    if quoted is None:
        return trouble.finding(message, trouble.at, trouble.at + 1, 'write `"`')
    put = f'"{quoted[1]}"'
    return trouble.finding(message, trouble.at, trouble.at + quoted.end(), f"write `{put}`", put=put)


def _bracket(trouble: Trouble) -> Diagnostic | None:
    """Brackets left open, and what belongs between them."""
    if not trouble.spans.open:
        return None
    opening = trouble.spans.open[-1]
    if trouble.text[opening] == "{":
        return _inline_table(trouble, opening)
    if _array_ends(trouble):
        outer = next(place for place in trouble.spans.open if trouble.text[place] == "[")
        note = None
        if trouble.at < len(trouble.text):
            note = f"line {trouble.source.line_column(trouble.at)[0]} already reads like the next statement"
        return trouble.finding("`[` is never closed", outer, outer + 1, "no `]` follows", note=note)
    if trouble.what == "Unclosed array":
        if trouble.rest.startswith(("}", ")")):
            wrong = trouble.rest[0]
            return trouble.finding(f"`[` is closed by `{wrong}`", trouble.at, trouble.at + 1, "write `]`", put="]")
        if not VALUE_STOP.match(trouble.text, trouble.at):
            return trouble.finding("a comma is missing between two elements", trouble.at, trouble.at, "write `,` here")
    return None


def _array_ends(trouble: Trouble) -> bool:
    """Whether the array that is open is followed by the end of the text or by what reads like a new statement."""
    if not trouble.text[trouble.at :].strip():
        return True
    before = trouble.text[trouble.line_start : trouble.at].strip(" \t[")
    fresh = not before or (trouble.rest.startswith("=") and re.fullmatch(r"[A-Za-z0-9_.-]+", before) is not None)
    return (
        fresh
        and trouble.line_start > trouble.spans.open[0]
        and _STATEMENT.match(trouble.text, trouble.line_start) is not None
    )


def _inline_table(trouble: Trouble, opening: int) -> Diagnostic | None:
    before = trouble.text[: trouble.at].rstrip(" \t")
    if trouble.text.startswith("{{", opening) or (before.endswith("{") and trouble.rest.startswith(("{", "%"))):
        alone = opening == trouble.spans.open[0]  # then all of the line is the template
        found = re.compile(r"[^\n#]*[^\s#]" if alone else r"[^\n#]*\}\}").match(trouble.text, opening)
        end = found.end() if found else trouble.line_end
        put = f'"{trouble.text[opening:end]}"' if '"' not in trouble.text[opening:end] else None
        return trouble.finding("a template is a string and needs quotes", opening, end, "put quotes around it", put=put)
    if trouble.rest.startswith("}") and before.endswith(","):
        comma = len(before) - 1
        message = "an inline table may not end in a comma"
        return trouble.finding(message, comma, comma + 1, "remove this comma", put="")
    if (not trouble.rest or trouble.rest.startswith("#")) and not before.endswith("="):
        message = "an inline table ends on the line on which it begins"
        advice = "close it with `}` on that line, or make it a `[table]` of its own"
        return trouble.finding(message, opening, opening + 1, "begins here", help=advice)
    if trouble.what == "Unclosed inline table":
        if trouble.rest.startswith("]"):
            return trouble.finding("`{` is closed by `]`", trouble.at, trouble.at + 1, "write `}`", put="}")
        if re.match(r"[\w\"'.-]+\s*=", trouble.rest):
            return trouble.finding("a comma is missing between two keys", trouble.at, trouble.at, "write `,` here")
    return None


def _key(trouble: Trouble) -> Diagnostic | None:
    """A statement whose key, or the `=` after it, is wrong."""
    line = trouble.text[trouble.line_start : trouble.line_end]
    start = trouble.line_start + len(line) - len(line.lstrip())
    if trouble.what.startswith("Expected '='"):
        return _no_equals(trouble, start)
    if not trouble.what.startswith(("Invalid statement", "Invalid initial character")):
        return None
    if trouble.rest.startswith("="):
        dotted = trouble.text[start : trouble.at].rstrip().endswith(".")
        message = "a key may not end in a dot" if dotted else "a value without a key"
        return trouble.finding(message, trouble.at, trouble.at + 1, "write a key before `=`")
    if trouble.rest.startswith("{") and not trouble.text[: trouble.at].strip():
        return trouble.finding("the file is not TOML", trouble.at, trouble.at + 1, "this begins like JSON")
    if re.match(r"\[+[ \t]*\]", line.strip()):
        return trouble.finding("a table header without a name", start, trouble.line_end, "write a name: `[name]`")
    if trouble.rest.startswith(("]", "}", ")")):
        bracket = trouble.rest[0]
        if bracket == "]" and line.lstrip().startswith("["):
            return trouble.finding("a part of the table's name is missing", trouble.at, trouble.at, "write it here")
        return trouble.finding(f"`{bracket}` closes nothing", trouble.at, trouble.at + 1, "remove it or open it before")
    word = re.match(r"[^\s=]+", trouble.rest)
    if word is None:
        return None
    return trouble.finding(
        f"a key may not contain `{trouble.rest[0]}`", trouble.at, trouble.at + word.end(), "put the key in quotes"
    )


def _no_equals(trouble: Trouble, start: int) -> Diagnostic:
    key = trouble.text[start : trouble.at].rstrip()
    if trouble.rest.startswith(":"):
        width = 2 if trouble.rest.startswith(":=") else 1
        put = " =" if trouble.text[trouble.at - 1] not in " \t" else "="
        return trouble.finding("TOML writes `key = value`", trouble.at, trouble.at + width, "write `=` here", put=put)
    equals = re.match(r"[^\"'#=]*?(?=\s*=)", trouble.rest)
    whole = re.split(r"[{,]", key)[-1].strip()
    start += len(key) - len(whole)
    if equals is not None and re.match(r"[A-Za-z0-9_-]", trouble.rest):
        end = trouble.at + equals.end()
        name = trouble.text[start:end]
        label = f"write `{'_'.join(name.split())}`, or put it in quotes"
        return trouble.finding(f"the key `{name}` has a space in it", start, end, label)
    if equals is not None and trouble.rest[:1] not in ("", "=", '"', "'"):
        message = f"a key may not contain `{trouble.rest[0]}`"
        return trouble.finding(message, start, trouble.at + equals.end(), "put the key in quotes")
    if not trouble.rest or trouble.rest.startswith("#"):
        return trouble.finding(f"`{whole}` has no value", start, start + len(whole), "write `= value` after it")
    message = f"`=` is missing after the key `{whole}`"
    return trouble.finding(message, trouble.at, trouble.at, "write `=` here")


def _header(trouble: Trouble) -> Diagnostic | None:
    if "end of a" not in trouble.what:
        return None
    closing = "]]" if "]]" in trouble.what else "]"
    line = trouble.text[trouble.line_start : trouble.line_end]
    start = trouble.line_start + line.index("[")
    named = re.match(r"\[+([^\[\]#\"']*?)\s*(?:\]+|$)", trouble.text[start : trouble.line_end])
    if named and " " in named[1].strip():
        message = f"the table name `{named[1].strip()}` has a space in it"
        return trouble.finding(message, start, start + named.end(), "use `_`, or put the name in quotes")
    label = f"write `{closing}` here"
    return trouble.finding(f"a table header is not closed by `{closing}`", trouble.at, trouble.at, label)


def _after_statement(trouble: Trouble) -> Diagnostic | None:
    """Something stands behind a complete statement."""
    if not trouble.what.startswith("Expected newline"):
        return None
    line = trouble.text[trouble.line_start : trouble.line_end]
    if line.lstrip().startswith("[") and "=" not in trouble.text[trouble.line_start : trouble.at]:
        if trouble.rest.startswith("]"):
            return trouble.finding("one `]` too many", trouble.at, trouble.at + 1, "remove it", put="")
        return trouble.finding("a table header stands alone on its line", trouble.at, trouble.line_end, "new line here")
    if trouble.rest.startswith(("]", "}", ")")):
        return trouble.finding(f"`{trouble.rest[0]}` closes nothing", trouble.at, trouble.at + 1, "remove it")
    if trouble.rest == ",":
        return trouble.finding("a line ends without a comma", trouble.at, trouble.at + 1, "remove it", put="")
    blank = trouble.text[trouble.at - 1 : trouble.at] in (" ", "\t")
    if blank and re.match(r"[A-Za-z0-9_.-]+\s*=(?!=)", trouble.rest):
        return trouble.finding("two statements on one line", trouble.at, trouble.line_end, "put this on its own line")
    return None
