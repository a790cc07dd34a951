"""The formats that programs read."""

from __future__ import annotations

import json

from runner.diag.diagnostic import Diagnostic, Fix, Place, Report, Source
from runner.diag.formats import to_github, to_json_lines, to_sarif

SOURCE = Source("my configs/a,b.toml", "a = 1\nb = '😀' # 100%\napi_key = 'sk-12345'\n")
FIRST = Diagnostic(
    "unknown-key",
    "no `b`:\n50%",
    Place(SOURCE, 6, 7),
    "did you mean `a`?",
    ("rename it",),
    ("seen",),
    ((Place(SOURCE, 0, 1), "first"),),
    fix=Fix(Place(SOURCE, 6, 7), "a"),
)
LINES = Diagnostic("wrong-type", "over `sk-12345`", Place(SOURCE, 10, 18), severity="warning")
NOWHERE = Diagnostic("not-found", "gone")
SAID = Diagnostic(
    "bad-override", "odd", Place(Source("command line", "--set model.api_key=sk-999", "command line"), 6, 11)
)
REPORT = Report([LINES, FIRST, NOWHERE, SAID])


def test_json_lines() -> None:
    nowhere, said, first, lines = map(json.loads, to_json_lines(REPORT).splitlines())
    assert first == {
        "code": "unknown-key",
        "severity": "error",
        "message": "no `b`:\n50%",
        "label": "did you mean `a`?",
        "file": "my configs/a,b.toml",
        "line": 2,
        "column": 1,
        "end_line": 2,
        "end_column": 2,
        "helps": ["rename it"],
        "notes": ["seen"],
        "related": [
            {"file": "my configs/a,b.toml", "line": 1, "column": 1, "end_line": 1, "end_column": 2, "label": "first"}
        ],
        "fix": {
            "file": "my configs/a,b.toml",
            "line": 2,
            "column": 1,
            "end_line": 2,
            "end_column": 2,
            "text": "a",
        },
    }
    assert (nowhere["file"], nowhere["line"], nowhere["fix"]) == (None, None, None)
    assert said["file"] == "command line: --set model.api_key=…"
    assert (lines["message"], lines["end_line"], lines["end_column"]) == ("over `…`", 2, 13)
    assert to_json_lines(Report()) == ""


def test_json_of_a_lone_surrogate_is_utf8() -> None:
    text = to_json_lines(Report([Diagnostic("x", "a \ud800 b é")]))
    assert json.loads(text.encode())["message"] == "a \ud800 b é"
    assert "é" in text


def test_github() -> None:
    assert to_github(REPORT).splitlines() == [
        "::error title=not-found::gone",
        "::error title=bad-override::command line: --set model.api_key=…: odd",
        "::error file=my configs/a%2Cb.toml,line=2,endLine=2,col=1,endColumn=1,title=unknown-key::"
        "no `b`:%0A50%25: did you mean `a`?%0Ahelp: rename it%0Anote: seen",
        "::warning file=my configs/a%2Cb.toml,line=2,endLine=2,col=5,endColumn=12,title=wrong-type::over `…`",
    ]


def test_sarif() -> None:
    log = json.loads(to_sarif(REPORT, "0.1.0"))
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run["columnKind"] == "unicodeCodePoints"
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["semanticVersion"]) == ("osmosis-run", "0.1.0")
    rules = driver["rules"]
    assert [rule["id"] for rule in rules] == ["not-found", "bad-override", "unknown-key", "wrong-type"]
    assert all(rule["shortDescription"]["text"] and rule["help"]["text"] for rule in rules)
    assert all(rules[one["ruleIndex"]]["id"] == one["ruleId"] for one in run["results"])
    nowhere, said, first, lines = run["results"]
    assert "locations" not in nowhere
    assert "locations" not in said
    assert said["message"]["text"] == "command line: --set model.api_key=…: odd"
    uri = {"uri": "my%20configs/a,b.toml"}
    region = {"startLine": 2, "startColumn": 1, "endLine": 2, "endColumn": 2}
    assert first["locations"] == [{"physicalLocation": {"artifactLocation": uri, "region": region}}]
    assert first["relatedLocations"][0]["message"] == {"text": "first"}
    assert first["fixes"][0]["artifactChanges"] == [
        {"artifactLocation": uri, "replacements": [{"deletedRegion": region, "insertedContent": {"text": "a"}}]}
    ]
    assert lines["level"] == "warning"
    assert to_sarif(Report(), "0.1.0")
