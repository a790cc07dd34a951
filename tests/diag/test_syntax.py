"""What is said about a text that is not TOML: the exact words, the exact place, and repairs that repair."""

from __future__ import annotations

import tomllib

import pytest

from runner.diag.diagnostic import Report, Source
from runner.diag.fix import apply_fixes
from runner.diag.render import render
from runner.diag.toml import read_document

# text, line:column, what is marked, message, label, the first place of a duplicate, the text after the fix
CASES = [
    ("temperature = warm", "1:15", "warm", "text needs quotes", 'write `"warm"`', None, 'temperature = "warm"'),
    ("temperature = warm # c", "1:15", "warm", "text needs quotes", 'write `"warm"`', None, 'temperature = "warm" # c'),
    ("a =", "1:1", "a", "`a` has no value", "write a value, or remove the line", None, None),
    ("a", "1:1", "a", "`a` has no value", "write `= value` after it", None, None),
    ("a b = 1", "1:1", "a b", "the key `a b` has a space in it", "write `a_b`, or put it in quotes", None, None),
    (
        "top p = 0.9",
        "1:1",
        "top p",
        "the key `top p` has a space in it",
        "write `top_p`, or put it in quotes",
        None,
        None,
    ),
    ("a 1", "1:3", "", "`=` is missing after the key `a`", "write `=` here", None, None),
    ("a: 1", "1:2", ":", "TOML writes `key = value`", "write `=` here", None, "a = 1"),
    ("a = 1\nb = 2\na = 3", "3:1", "a", "`a` is set twice", "remove one of them", "1:1", None),
    (
        "[a]\nx = 1\n[b]\n[a]",
        "4:2",
        "a",
        "table `[a]` is defined twice",
        "merge the two tables, or rename one",
        "1:2",
        None,
    ),
    ("a.b = 1\n[a]", "2:2", "a", "`a` is already a table", "write all its keys in one place", "1:1", None),
    (
        "a = 1\n[a.b]",
        "2:4",
        "b",
        "`a.b` cannot be added to `a`, which is already set to a value",
        "remove it, or write it into the first",
        "1:1",
        None,
    ),
    (
        "a = {b = 1}\na.c = 2",
        "2:3",
        "c",
        "`a.c` cannot be added to `a`, which is already set to a value",
        "remove it, or write it into the first",
        "1:1",
        None,
    ),
    ("[x]\na = {b = 1, b = 2}", "2:13", "b", "`x.a.b` is set twice", "remove one of them", "2:6", None),
    ("a = []\n[[a]]", "2:3", "a", "`a` is both a value and an array of tables", "rename one of them", "1:1", None),
    ("[[a]]\n[a]", "2:2", "a", "`a` is already an array of tables", "write `[[a]]`, or rename one", "1:3", None),
    ("a = {b = 1,}", "1:11", ",", "an inline table may not end in a comma", "remove this comma", None, "a = {b = 1}"),
    (
        "a = {b = 1,\n c = 2}",
        "1:5",
        "{",
        "an inline table ends on the line on which it begins",
        "begins here",
        None,
        None,
    ),
    ("a = {\nb = 1 }", "1:5", "{", "an inline table ends on the line on which it begins", "begins here", None, None),
    ("a = {b = 1 c = 2}", "1:12", "", "a comma is missing between two keys", "write `,` here", None, None),
    ("a = {b = 1", "1:5", "{", "an inline table ends on the line on which it begins", "begins here", None, None),
    ("a = {b = 1\nx = 2", "1:5", "{", "an inline table ends on the line on which it begins", "begins here", None, None),
    ("a = {b = 1]", "1:11", "]", "`{` is closed by `]`", "write `}`", None, "a = {b = 1}"),
    ('r = "\\d+\\."', "1:6", "\\d", '`\\d` is no escape in a "…" string', "write `\\\\d`", None, "r = '\\d+\\.'"),
    ('r = "^\\s*\'(\\d+)"', "1:7", "\\s", '`\\s` is no escape in a "…" string', "write `\\\\s`", None, None),
    (
        'p = "C:\\Users\\me"',
        "1:8",
        "\\U",
        "`\\U` wants 8 hexadecimal digits of a character",
        "write `\\\\U`",
        None,
        "p = 'C:\\Users\\me'",
    ),
    (
        'r = { regex = "####\\s*(.+)", take = "last" }',
        "1:20",
        "\\s",
        '`\\s` is no escape in a "…" string',
        "write `\\\\s`",
        None,
        "r = { regex = '####\\s*(.+)', take = \"last\" }",
    ),
    ("a = True", "1:5", "True", "TOML writes `true`, not `True`", "write `true`", None, "a = true"),
    ("a = [True, False]", "1:6", "True", "TOML writes `true`, not `True`", "write `true`", None, "a = [true, False]"),
    ("a = None", "1:5", "None", "TOML has no `None`", "remove the line: a key left out has its default", None, None),
    ("a = [1, 2\nb = 3", "1:5", "[", "`[` is never closed", "no `]` follows", None, None),
    ("a = [1, 2", "1:5", "[", "`[` is never closed", "no `]` follows", None, None),
    ('a = ["x",\n[section]\nb = 1', "1:5", "[", "`[` is never closed", "no `]` follows", None, None),
    ('a = ["x"\n[section]\nb = 1', "1:5", "[", "`[` is never closed", "no `]` follows", None, None),
    ('a = ["x",\nb = 1', "1:5", "[", "`[` is never closed", "no `]` follows", None, None),
    ('a = ["x" "y"]', "1:10", "", "a comma is missing between two elements", "write `,` here", None, None),
    ("a = [x, y]", "1:6", "x", "text needs quotes", 'write `"x"`', None, 'a = ["x", y]'),
    ("a = [1, 2)", "1:10", ")", "`[` is closed by `)`", "write `]`", None, "a = [1, 2]"),
    ('a = "abc\nb = 1', "1:5", '"abc', "a string is not closed", 'write `"` at its end', None, None),
    ("a = 'abc", "1:5", "'abc", "a string is not closed", "write `'` at its end", None, None),
    ("a = 'it's'", "1:9", "s'", "the string ends at its second `'`, and more follows", "", None, None),
    ('a = "say "hi" now"', "1:11", 'hi" now"', 'the string ends at its second `"`, and more follows', "", None, None),
    ('a = """\nabc', "1:5", '"""', "a text of several lines is not closed", 'no `"""` follows', None, None),
    (
        'a = "x" y',
        "1:9",
        "y",
        'the string ends at its second `"`, and more follows',
        "remove this, or begin it with `#` to make it a comment",
        None,
        None,
    ),
    ("t = 5m", "1:5", "5m", "a value with a unit is a string", 'put quotes around it: `"5m"`', None, 't = "5m"'),
    (
        "t = 0.25 USD",
        "1:5",
        "0.25 USD",
        "a value with a unit is a string",
        'put quotes around it: `"0.25 USD"`',
        None,
        't = "0.25 USD"',
    ),
    ("t = .5", "1:5", ".5", "a number has a digit before its point", "write `0.5`", None, "t = 0.5"),
    ("t = 1.", "1:5", "1.", "a number has a digit after its point", "write `1.0`", None, "t = 1.0"),
    ("t = 007", "1:5", "007", "a number may not begin with zeros", "write `7`", None, "t = 7"),
    ("t = 1,000", "1:5", "1,000", "a number has no commas", "write `1_000`", None, "t = 1_000"),
    (
        "t = 2024-13-45",
        "1:5",
        "2024-13-45",
        "`2024-13-45` is no date or time",
        "correct it, or put quotes around it",
        None,
        None,
    ),
    (
        "t = 2024-01-01x",
        "1:5",
        "2024-01-01x",
        "`2024-01-01x` is no date or time",
        "correct it, or put quotes around it",
        None,
        None,
    ),
    (
        "x = {{ label }}",
        "1:5",
        "{{ label }}",
        "a template is a string and needs quotes",
        "put quotes around it",
        None,
        'x = "{{ label }}"',
    ),
    (
        "x = “smart”",
        "1:5",
        "“smart”",
        "the typographic quote “ does not quote text in TOML",
        'write `"smart"`',
        None,
        'x = "smart"',
    ),
    ("x = `tick`", "1:5", "`tick`", "a backtick does not quote text in TOML", 'write `"tick"`', None, 'x = "tick"'),
    ("// comment", "1:1", "//", "a comment begins with `#`", "write `#` here", None, "# comment"),
    ("a = 1 // comment", "1:7", "//", "a comment begins with `#`", "write `#` here", None, "a = 1 # comment"),
    ("; comment", "1:1", ";", "a comment begins with `#`", "write `#` here", None, "# comment"),
    ("a = 1;", "1:6", ";", "a line ends without a `;`", "remove it", None, "a = 1"),
    ("a = 1,", "1:6", ",", "a line ends without a comma", "remove it", None, "a = 1"),
    ("<<<<<<< HEAD", "1:1", "<<<<<<< HEAD", "a merge conflict is still in the file", "resolve it", None, None),
    ("- item", "1:1", "- item", "this is not TOML", "this reads like YAML", None, None),
    ("---\na: 1", "1:1", "---", "this is not TOML", "this reads like YAML", None, None),
    ('{"a": 1}', "1:1", "{", "the file is not TOML", "this begins like JSON", None, None),
    ("[]", "1:1", "[]", "a table header without a name", "write a name: `[name]`", None, None),
    ("[a\nb = 1", "1:3", "", "a table header is not closed by `]`", "write `]` here", None, None),
    (
        "[a b]",
        "1:1",
        "[a b]",
        "the table name `a b` has a space in it",
        "use `_`, or put the name in quotes",
        None,
        None,
    ),
    ("[[a]", "1:4", "", "a table header is not closed by `]]`", "write `]]` here", None, None),
    ("[a]]", "1:4", "]", "one `]` too many", "remove it", None, "[a]"),
    ("[a] b = 1", "1:5", "b = 1", "a table header stands alone on its line", "new line here", None, None),
    ("a = 1 b = 2", "1:7", "b = 2", "two statements on one line", "put this on its own line", None, None),
    ('$schema = "x"', "1:1", "$schema", "a key may not contain `$`", "put the key in quotes", None, None),
    ("a/b = 1", "1:1", "a/b", "a key may not contain `/`", "put the key in quotes", None, None),
    ("naïve = 1", "1:1", "naïve", "a key may not contain `ï`", "put the key in quotes", None, None),
    ("= 1", "1:1", "=", "a value without a key", "write a key before `=`", None, None),
    ("a. = 1", "1:4", "=", "a key may not end in a dot", "write a key before `=`", None, None),
    ("a.b.c", "1:1", "a.b.c", "`a.b.c` has no value", "write `= value` after it", None, None),
    ("]", "1:1", "]", "`]` closes nothing", "remove it or open it before", None, None),
    ("a = 1]", "1:6", "]", "`]` closes nothing", "remove it", None, None),
    ("a = (1, 2)", "1:5", "(1, 2)", "TOML has no `(…)`", "a list stands between `[` and `]`", None, None),
    ('a = ["a",, "b"]', "1:10", ",", "a value is missing before the comma", "remove one comma", None, 'a = ["a", "b"]'),
    ("a = information", "1:5", "information", "text needs quotes", 'write `"information"`', None, 'a = "information"'),
    ("a = x.y:z", "1:5", "x.y:z", "text needs quotes", 'write `"x.y:z"`', None, 'a = "x.y:z"'),
    ("a = ./file", "1:5", "./file", "text needs quotes", 'write `"./file"`', None, 'a = "./file"'),
    ("a = \\d", "1:5", "\\d", "text needs quotes", "put quotes around it", None, None),
    (
        'a = "\\u12"',
        "1:6",
        "\\u",
        "`\\u` wants 4 hexadecimal digits of a character",
        "write `\\\\u`",
        None,
        "a = '\\u12'",
    ),
    ('a = "x\\', "1:7", "\\", '`\\` is no escape in a "…" string', "write `\\\\`", None, None),
    ('"abc = 1', "1:1", '"abc = 1', "a string is not closed", 'write `"` at its end', None, None),
    (
        "a = [{b = 1}, {b = True}]",
        "1:20",
        "True",
        "TOML writes `true`, not `True`",
        "write `true`",
        None,
        "a = [{b = 1}, {b = true}]",
    ),
    (
        "a = [ {x = 1, }, ]",
        "1:13",
        ",",
        "an inline table may not end in a comma",
        "remove this comma",
        None,
        "a = [ {x = 1 }, ]",
    ),
    ('[tools.search\ncall = "x"', "1:14", "", "a table header is not closed by `]`", "write `]` here", None, None),
    ("a == 1", "1:4", "=", "one `=` too many", "remove it", None, "a = 1"),
    ("a := 1", "1:3", ":=", "TOML writes `key = value`", "write `=` here", None, "a = 1"),
    ("a\xa0= 1", "1:2", "\xa0", "an invisible character", "U+00A0 NO-BREAK SPACE", None, None),
    ('a = "x\ty\x07"', "1:9", "\x07", "an invisible character", "U+0007 CONTROL CHARACTER", None, None),
    ("a = 1 \x0b", "1:7", "\x0b", "an invisible character", "U+000B CONTROL CHARACTER", None, None),
    (
        "a = 1\r\nb = 2\r\nb = x\r\n",
        "3:5",
        "x",
        "text needs quotes",
        'write `"x"`',
        None,
        'a = 1\r\nb = 2\r\nb = "x"\r\n',
    ),
    ("# x\ry\n", "1:4", "\r", "a carriage return without a line feed", "remove it", None, "# xy\n"),
    (
        "x = ‘a’\n",
        "1:5",
        "‘a’",
        "the typographic quote ‘ does not quote text in TOML",
        'write `"a"`',
        None,
        'x = "a"\n',
    ),
    ("a = [\n  1,\n  2\n\n[b]\nc = 1\n", "1:5", "[", "`[` is never closed", "no `]` follows", None, None),
    ("api = 'x\n", "1:7", "'x", "a string is not closed", "write `'` at its end", None, None),
    ('a = "x"y"\n', "1:8", 'y"', 'the string ends at its second `"`, and more follows', "", None, None),
    ("a = 0x\n", "1:5", "0x", "text needs quotes", 'write `"0x"`', None, 'a = "0x"\n'),
    ("a = 1_\n", "1:5", "1_", "text needs quotes", 'write `"1_"`', None, 'a = "1_"\n'),
    ("a = [1,,2]\n", "1:8", ",", "a value is missing before the comma", "remove one comma", None, "a = [1,2]\n"),
    ("a = { b = yes }\n", "1:11", "yes", "TOML writes `true`, not `yes`", "write `true`", None, "a = { b = true }\n"),
    (
        "a = { b = 5m, c = 1 }\n",
        "1:11",
        "5m",
        "a value with a unit is a string",
        'put quotes around it: `"5m"`',
        None,
        'a = { b = "5m", c = 1 }\n',
    ),
    ("[a]]]\n", "1:4", "]", "one `]` too many", "remove it", None, "[a]]\n"),
    (
        "user = {{ row.q }} and more\n",
        "1:8",
        "{{ row.q }} and more",
        "a template is a string and needs quotes",
        "put quotes around it",
        None,
        'user = "{{ row.q }} and more"\n',
    ),
    ("a = 'C:\\x' + 'b'\n", "1:12", "+ 'b'", "the string ends at its second `'`, and more follows", "", None, None),
    (
        "[[t]]\na = 1\n[[t.b]]\n[t.b]\n",
        "4:4",
        "b",
        "`t.b` is already an array of tables",
        "write `[[t.b]]`, or rename one",
        "3:5",
        None,
    ),
    ('a = """\nx \\d\n"""\n', "2:3", "\\d", '`\\d` is no escape in a "…" string', "write `\\\\d`", None, None),
    ("a = 1\n\ufeffb = 2\n", "2:1", "\ufeff", "an invisible character", "U+FEFF ZERO WIDTH NO-BREAK SPACE", None, None),
    ("a, b = 1, 2\n", "1:1", "a, b", "a key may not contain `,`", "put the key in quotes", None, None),
    ("import x\n", "1:8", "", "`=` is missing after the key `import`", "write `=` here", None, None),
    ("[a.]\n", "1:4", "", "a part of the table's name is missing", "write it here", None, None),
    ("a = --1\n", "1:5", "--1", "text needs quotes", 'write `"--1"`', None, 'a = "--1"\n'),
    ("a.b = 1\na = 2\n", "2:1", "a", "`a` is already a table", "write all its keys in one place", "1:1", None),
    ("[a]\nb = 1\n[a.b]\nc = 1\n", "3:4", "b", "`a.b` is both a key and a table", "rename one of them", "2:1", None),
    ("a = 12:99\n", "1:5", "12:99", "`12:99` is no date or time", "correct it, or put quotes around it", None, None),
    (
        "call = module:fn # which\n",
        "1:8",
        "module:fn",
        "text needs quotes",
        'write `"module:fn"`',
        None,
        'call = "module:fn" # which\n',
    ),
    ('a = ["x", \'y]\n', "1:11", "'y]", "a string is not closed", "write `'` at its end", None, None),
]


@pytest.mark.parametrize(("text", "where", "marked", "message", "label", "first", "repaired"), CASES)
def test_slips(
    text: str, where: str, marked: str, message: str, label: str, first: str | None, repaired: str | None
) -> None:
    report = Report()
    assert read_document(Source("f", text), report) is None
    (finding,) = report
    place = finding.place
    assert place is not None
    assert (f"{place.line}:{place.column}", text[place.start : place.end]) == (where, marked)
    assert (finding.message, finding.label) == (message, label)
    assert [f"{one.line}:{one.column}" for one, _ in finding.related] == ([first] if first else [])
    assert finding.code == ("duplicate-key" if first else "syntax")
    assert apply_fixes(report).get("f") == repaired


SEVERAL = {"a = [True, False]", "a = [x, y]", "[a]]]\n", "a = 1\r\nb = 2\r\nb = x\r\n"}
"""Texts in which one repair leaves the next slip."""


@pytest.mark.parametrize("case", [case for case in CASES if case[6] is not None and case[0] not in SEVERAL])
def test_a_repaired_text_is_toml(case: tuple[str, ...]) -> None:
    tomllib.loads(case[6])


def shown(text: str) -> str:
    report = Report()
    assert read_document(Source("w.toml", text), report) is None
    return render(report, color=False)


def test_whole_text_of_a_regex_in_double_quotes() -> None:
    assert shown('[graders.a]\nextract = { regex = "####\\s*(.+)", take = "last" }\n') == (
        'w.toml:2:26 error[syntax] `\\s` is no escape in a "…" string\n'
        "  |\n"
        '2 | extract = { regex = "####\\s*(.+)", take = "last" }\n'
        "  |                          ^^ write `\\\\s`\n"
        "  |\n"
        "  = help: use single quotes, in which a backslash is only a backslash: `'####\\s*(.+)'`\n"
        "\n"
        "w.toml: 1 error\n"
    )


def test_whole_text_of_a_table_twice() -> None:
    assert shown("[model]\nid = 1\n\n[sampling]\n[model]\n") == (
        "w.toml:5:2 error[duplicate-key] table `[model]` is defined twice\n"
        "  |\n"
        "1 | [model]\n"
        "  |  ----- first here\n"
        "...\n"
        "5 | [model]\n"
        "  |  ^^^^^ merge the two tables, or rename one\n"
        "\n"
        "w.toml: 1 error\n"
    )


def test_a_key_pasted_without_quotes_is_not_echoed() -> None:
    assert shown("[model]\napi_key = sk-123456 # mine\n") == (
        "w.toml:2:11 error[syntax] text needs quotes\n"
        "  |\n"
        "2 | api_key = … # mine\n"
        '  |           ^ write `"…"`\n'
        "\n"
        "w.toml: 1 error\n"
    )


def test_an_endless_integer() -> None:
    report = Report()
    assert read_document(Source("f", "a = 1\nb = " + "1" * 5000), report) is None
    assert [(one.message, str(one.place)) for one in report] == [("an integer of more than 4,300 digits", "f:2:5")]
