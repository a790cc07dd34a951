"""`to_json_lines`, `to_github`, `to_sarif`: a report for programs. Secrets are hidden here as in the rendered text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from runner.diag.codes import CODES
from runner.diag.diagnostic import Diagnostic, Place, Report
from runner.diag.line import visible
from runner.diag.secret import redacted, secret_ranges

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def to_json_lines(report: Report) -> str:
    """One JSON object a line for each finding; lines and columns from 1, columns in characters, ends exclusive."""
    lines = (json.dumps(_json(redacted(finding)), ensure_ascii=False) + "\n" for finding in report)
    return "".join(lines).encode("utf-8", "backslashreplace").decode()  # a lone surrogate, as an escape


def _json(finding: Diagnostic) -> dict[str, Any]:
    fix = finding.fix
    return {
        "code": finding.code,
        "severity": finding.severity,
        "message": finding.message,
        "label": finding.label,
        **_json_place(finding.place),
        "helps": list(finding.helps),
        "notes": list(finding.notes),
        "related": [{**_json_place(place), "label": label} for place, label in finding.related],
        "fix": None if fix is None else {**_json_place(fix.place), "text": fix.text},
    }


def _json_place(place: Place | None) -> dict[str, str | int | None]:
    if place is None:
        return dict.fromkeys(("file", "line", "column", "end_line", "end_column"))
    line, column = place.source.line_column(place.start)
    end_line, end_column = place.source.line_column(place.end)
    file = _name(place)
    return {"file": file, "line": line, "column": column, "end_line": end_line, "end_column": end_column}


def _name(place: Place) -> str:
    """The file, or what the user said elsewhere, without its secrets."""
    source = place.source
    if source.origin == "file":
        return source.name
    said = source.text
    for start, end in reversed(secret_ranges(source)):
        said = f"{said[:start]}…{said[end:]}"
    return f"{source.name}: {said}"


def to_github(report: Report) -> str:
    """One workflow command a line, which GitHub shows beside the line of the file."""
    return "".join(f"{_annotation(redacted(finding))}\n" for finding in report)


def _annotation(finding: Diagnostic) -> str:
    properties: dict[str, str | int] = {}
    place = finding.place
    if place is not None and place.source.origin == "file":
        line, column = place.source.line_column(place.start)
        end_line, end_column = place.source.line_column(max(place.end - 1, place.start))
        properties = {"file": place.source.name, "line": line, "endLine": end_line}
        if line == end_line:  # GitHub takes columns only within one line, the last one inclusive
            properties |= {"col": column, "endColumn": end_column}
    properties["title"] = finding.code
    said = "" if place is None or place.source.origin == "file" else f"{_name(place)}: "
    text = "\n".join(visible(line) for one in _sentences(finding, said) for line in one.split("\n"))
    head = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{finding.severity} {head}::{_data(text)}"


def _sentences(finding: Diagnostic, before: str = "") -> Iterator[str]:
    yield before + finding.message + (f": {finding.label}" if finding.label else "")
    yield from (f"help: {text}" for text in finding.helps)
    yield from (f"note: {text}" for text in finding.notes)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str | int) -> str:
    return _data(str(value)).replace(":", "%3A").replace(",", "%2C")


def to_sarif(report: Report, version: str) -> str:
    """A SARIF 2.1.0 log of one run by `osmosis-run` of `version`; columns count Unicode code points."""
    findings = [redacted(finding) for finding in report]
    codes = list(dict.fromkeys(finding.code for finding in findings))
    driver = {
        "name": "osmosis-run",
        "semanticVersion": version,
        "version": version,
        "rules": [_rule(code) for code in codes],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, codes.index(finding.code)) for finding in findings],
    }
    log = {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, indent=2) + "\n"


def _rule(code: str) -> dict[str, Any]:
    entry = CODES.get(code)
    if entry is None:
        return {"id": code}
    return {
        "id": code,
        "shortDescription": {"text": entry.title},
        "fullDescription": {"text": entry.explanation},
        "help": {"text": f"{entry.explanation}\n\n{entry.example}\n\n{entry.cure}"},
    }


def _result(finding: Diagnostic, rule: int) -> dict[str, Any]:
    place = finding.place
    said = "" if place is None or place.source.origin == "file" else f"{_name(place)}: "
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": finding.severity,
        "message": {"text": "\n".join(_sentences(finding, said))},
    }
    if place is not None and place.source.origin == "file":
        result["locations"] = [_location(place)]
    related = [(where, label) for where, label in finding.related if where.source.origin == "file"]
    if related:
        result["relatedLocations"] = [
            {**_location(where), "id": number, "message": {"text": label or "see here"}}
            for number, (where, label) in enumerate(related, 1)
        ]
    fix = finding.fix
    if fix is not None and fix.place.source.origin == "file":
        replacement = {"deletedRegion": _region(fix.place), "insertedContent": {"text": fix.text}}
        change = {"artifactLocation": {"uri": _uri(fix.place.source.name)}, "replacements": [replacement]}
        result["fixes"] = [{"description": {"text": finding.label or finding.message}, "artifactChanges": [change]}]
    return result


def _location(place: Place) -> dict[str, Any]:
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(place.source.name)},
            "region": _region(place),
        }
    }


def _uri(name: str) -> str:
    """A file's name as a relative URI reference; an absolute path becomes a `file:` URI."""
    path = name.replace("\\", "/")
    escaped = quote(path.encode("utf-8", "surrogateescape"), safe="/!$&'()*+,;=@~-._")
    return f"file://{escaped}" if path.startswith("/") else escaped


def _region(place: Place) -> dict[str, int]:
    line, column = place.source.line_column(place.start)
    end_line, end_column = place.source.line_column(place.end)
    return {"startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column}
