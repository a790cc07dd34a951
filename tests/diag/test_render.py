"""Whole rendered texts."""

from __future__ import annotations

from runner.diag.diagnostic import Diagnostic, Fix, Place, Report, Source
from runner.diag.fix import apply_fixes
from runner.diag.render import render, summary


def place(source: Source, words: str, length: int | None = None) -> Place:
    start = source.text.index(words)
    return Place(source, start, start + (len(words) if length is None else length))


def shown(*findings: Diagnostic) -> str:
    return render(Report(list(findings)), color=False)


MATH = Source("configs/math.toml", "[sampling]\ntemprature = 0.7\n\n\nname = 'x'\n")


def test_the_decided_layout() -> None:
    finding = Diagnostic(
        "unknown-key",
        "`[sampling]` has no key `temprature`",
        place(MATH, "temprature"),
        "did you mean `temperature`?",
        ("rename it to `temperature`",),
        ("one\ntwo",),
    )
    other = Diagnostic("wrong-type", "a table", place(MATH, "'x'"), related=((place(MATH, "sampling"), "this one"),))
    assert shown(other, finding) == (
        "configs/math.toml:2:1 error[unknown-key] `[sampling]` has no key `temprature`\n"
        "  |\n"
        "2 | temprature = 0.7\n"
        "  | ^^^^^^^^^^ did you mean `temperature`?\n"
        "  |\n"
        "  = help: rename it to `temperature`\n"
        "  = note: one\n"
        "          two\n"
        "\n"
        "configs/math.toml:5:8 error[wrong-type] a table\n"
        "  |\n"
        "1 | [sampling]\n"
        "  |  -------- this one\n"
        "...\n"
        "5 | name = 'x'\n"
        "  |        ^^^\n"
        "\n"
        "configs/math.toml: 2 errors\n"
    )


def test_another_file_no_place_and_a_warning() -> None:
    lower = Source("lower.toml", "\n" * 11 + "temprature = 1")
    first = Diagnostic("a", "here", place(MATH, "0.7"), related=((place(lower, "temprature"), "and there"),))
    assert shown(first, Diagnostic("b", "no file", severity="warning", helps=("make one",))) == (
        "warning[b] no file\n"
        "  = help: make one\n"
        "\n"
        "configs/math.toml:2:14 error[a] here\n"
        "   |\n"
        " 2 | temprature = 0.7\n"
        "   |              ^^^\n"
        "  ::: lower.toml:12:1\n"
        "   |\n"
        "12 | temprature = 1\n"
        "   | ---------- and there\n"
        "\n"
        "configs/math.toml: 1 error, 1 warning\n"
    )
    assert summary(Report([first, Diagnostic("a", "x", place(lower, "1"))])) == "2 errors in 2 files"
    assert render(Report(), color=False) == ""


def test_command_line_and_secrets() -> None:
    said = Source("command line", "--set sampling.temperature=20", "command line")
    secret = Source("environment", "OSMOSIS_MODEL_API_KEY=sk-12345", "environment")
    assert shown(
        Diagnostic("out-of-range", "must be at most 2, found 20", place(said, "20"), "too hot"),
        Diagnostic("wrong-type", "`sk-12345` is no table", place(secret, "sk-12345")),
    ) == (
        "command line: --set sampling.temperature=20 error[out-of-range] must be at most 2, found 20\n"
        "  |\n"
        "  | --set sampling.temperature=20\n"
        "  |                            ^^ too hot\n"
        "\n"
        "environment: OSMOSIS_MODEL_API_KEY=… error[wrong-type] `…` is no table\n"
        "  |\n"
        "  | OSMOSIS_MODEL_API_KEY=…\n"
        "  |                       ^\n"
        "\n"
        "2 errors\n"
    )


def test_secrets_in_files() -> None:
    text = (
        "a = { api_key = \"sk-1\", max_tokens = 'many', auth_token = '''a\nb''' }\n"
        'HF_TOKEN = "hf\\"x" # y\npassword = { env = "PW" }\n'
    )
    source = Source("f", text)
    assert shown(
        Diagnostic("x", "one", place(source, "max")),
        Diagnostic("x", "two", place(source, "b''")),
        Diagnostic("x", "three", place(source, "# y")),
        Diagnostic("x", "four", place(source, "env")),
    ) == (
        "f:1:25 error[x] one\n"
        "  |\n"
        "1 | a = { api_key = \"…\", max_tokens = 'many', auth_token = '''…\n"
        "  |                      ^^^\n"
        "\n"
        "f:2:1 error[x] two\n"
        "  |\n"
        "2 | …''' }\n"
        "  | ^^^\n"
        "\n"
        "f:3:20 error[x] three\n"
        "  |\n"
        '3 | HF_TOKEN = "…" # y\n'
        "  |                ^^^\n"
        "\n"
        "f:4:14 error[x] four\n"
        "  |\n"
        '4 | password = { env = "PW" }\n'
        "  |              ^^^\n"
        "\n"
        "f: 4 errors\n"
    )


def test_odd_characters_stay_aligned() -> None:
    source = Source("f", "\ta\t= '日本 e\u0301 \x1b[31m\u202e\x7f' # X\r\n")
    assert shown(Diagnostic("x", "m\x1b[0m", place(source, "#"))) == (
        "f:1:22 error[x] m␛[0m\n"
        "  |\n"
        "1 |     a   = '日本 e\u0301 ␛[31m<U+202E><U+007F>' # X\n"
        "  |" + " " * 42 + "^\n"
        "\n"
        "f: 1 error\n"
    )


def test_long_lines_ranges_over_lines_and_empty_ranges() -> None:
    source = Source("f", f"a = '{'x' * 90} HERE {'y' * 90}'\nb = [\n 1]\n")
    assert shown(
        Diagnostic("x", "long", place(source, "HERE")),
        Diagnostic("x", "lines", place(source, "[\n 1]")),
        Diagnostic("x", "empty", place(source, " 1]", 0)),
        Diagnostic("x", "end", Place(source, len(source.text), len(source.text))),
    ) == (
        "f:1:97 error[x] long\n"
        "  |\n"
        f"1 | …{'x' * 39} HERE {'y' * 55}…\n"
        f"  | {' ' * 41}^^^^\n"
        "\n"
        "f:2:5 error[x] lines\n"
        "  |\n"
        "2 | b = [\n"
        "  |     ^\n"
        "\n"
        "f:3:1 error[x] empty\n"
        "  |\n"
        "3 |  1]\n"
        "  | ^\n"
        "\n"
        "f:4:1 error[x] end\n"
        "  |\n"
        "4 |\n"
        "  | ^\n"
        "\n"
        "f: 4 errors\n"
    )


def test_colour_only_adds_colour() -> None:
    import re

    finding = Diagnostic("x", "m", place(MATH, "0.7"), "l", ("h",), ("n",), ((place(MATH, "'x'"), "r"),), "warning")
    report = Report([finding])
    coloured = render(report, color=True)
    assert "\x1b[1;33mwarning[x]\x1b[0m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == render(report, color=False)


def test_fixes_that_touch_are_made_one_at_a_time() -> None:
    source = Source("f", "abcdef\r\n")
    said = Source("command line", "--set a=b", "command line")

    def fix(start: int, end: int, text: str, where: Source = source) -> Diagnostic:
        return Diagnostic("x", text, Place(where, start, end), fix=Fix(Place(where, start, end), text))

    report = Report(
        [fix(4, 5, "E"), fix(0, 2, "AB"), fix(1, 3, "no"), fix(2, 2, "+"), fix(2, 2, "+"), fix(0, 1, "", said)]
    )
    assert apply_fixes(report) == {"f": "AB+cdEf\r\n"}
    assert apply_fixes(Report([Diagnostic("x", "nothing to repair")])) == {}
