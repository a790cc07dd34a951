"""Every key and value of every document has a place, and what stands there is what `tomllib` read."""

from __future__ import annotations

import math
import sysconfig
import tomllib
from pathlib import Path as FilePath
from typing import Any

import pytest
import tomli_w
from hypothesis import example, given, settings
from hypothesis import strategies as st

from runner.diag.diagnostic import Report, Source
from runner.diag.span import walk
from runner.diag.toml import Document, read_document


def document(text: str) -> Document:
    report = Report()
    found = read_document(Source("f.toml", text), report)
    assert found is not None, list(report)
    return found


def at(data: Any, path: tuple[str | int, ...]) -> Any:
    for part in path:
        data = data[part]
    return data


def same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return type(one) is type(other) and bool(one == other)


def check(text: str) -> None:
    """Path sets agree; scalars re-parse from their range; keys re-parse to the last part of their path."""
    found = document(text)
    paths = list(found.paths())
    spans = walk(text)
    assert spans.lost is None
    assert set(spans.keys) == set(spans.values) == set(paths)
    for path in paths:
        key, value = found.key_place(path), found.value_place(path)
        assert key is not None
        assert value is not None
        meant = at(found.data, path)
        raw = text[value.start : value.end]
        if not isinstance(meant, dict | list):
            assert same(tomllib.loads(f"x = {raw}")["x"], meant), (path, raw)
        written = text[key.start : key.end]
        if isinstance(path[-1], str):
            assert list(tomllib.loads(f"{written} = 0")) == [path[-1]], (path, written)


EDGES = [
    "",
    "# only a comment",
    "a = 1",
    "a.b.c = 1\na.b.d = 2\na.e = 3",
    '"quoted key" = 1\n\'literal key\' = 2\n"" = 3\n"esc\\"aped\\u00e9" = 4',
    "[a.b.c]\nx = 1\n[a]\ny = 2\n[a.b]\nz = 3",
    '[ a . "b.c" . d ]\nx = 1 # comment',
    "[[a]]\nx = 1\n[[a]]\nx = 2\n[[a.b]]\ny = 1\n[[a.b]]\n[a.b.c]\nz = 1\n[[a]]\n[a.d]\nq.r = 1",
    "a = []\nb = [ ]\nc = {}\nd = { }",
    "a = [ 1, 2, # one\n  3, # two\n\n  [4, [5, {x = [6]}]], ]",
    "a = { b = { c.d = 1, e = [1, {f = 2}] }, 'g h' = 'i' }",
    'a = """\nfirst\nsecond \\\n   third "" quotes"""\nb = 1',
    'a = """"two quotes\\""""""\nb = """x"""""\nc = \'\'\'\'a\'\'\'\'\'\nd = """"""\ne = \'\'\'\'\'\'',
    'a = """# no comment\n[not.a.table]\nb = 1"""\nc = 2',
    "a = ''\nb = \"\"\nc = 'it # is'\nd = \"]}#,=\"",
    "a = 1979-05-27 07:32:00Z\nb = 1979-05-27T00:32:00.999999-07:00\nc = 07:32:00",
    "d = [1979-05-27 07:32:00, 1979-05-27]",
    "a = 0x1F\nb = 0b101\nc = 1_000\nd = -1.5e-3\ne = +inf\nf = nan\ng = true\nh = 0o17",
    'a = 1\r\n[b]\r\nc = [\r\n 1,\r\n 2]\r\nd = """\r\nx\r\n"""\r\ne = 5\r\n',
    "a = 1#c\n[b]#c\nc = [#c\n1#c\n,2]#c\n",
    "3.14 = 1\n1234 = 2\n-_- = 3\ntrue = 4\n2024-01-01 = 5",
    "\t a \t=\t1\t\n\t[b]\t\n",
    '"日本" = "語 e\u0301 😀"',
    "x = [{a = 1}, {a = 2}]\n[y]\nx = [[[]]]",
]


@pytest.mark.parametrize("text", EDGES)
def test_edge_cases(text: str) -> None:
    check(text)


FILES = sorted(FilePath(sysconfig.get_path("purelib")).rglob("*.toml"))


def test_files_of_this_machine() -> None:
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in FILES]
    for text in texts:
        try:
            tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            continue
        check(text)


KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(["a", "b", "c", "a.b", '"', "'"])
SCALARS = (
    st.integers(-(2**40), 2**40)
    | st.booleans()
    | st.floats()
    | st.datetimes()
    | st.dates()
    | st.times()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    | st.text("\"'\\\n#=[]{}, ab", max_size=10)
)
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(KEYS, v, max_size=3), max_leaves=12)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(KEYS, VALUES, max_size=5), st.booleans())
@example({"a": [{"b": 1}, {"b": {"c": []}}]}, False)
def test_written_documents(data: dict[str, Any], multiline: bool) -> None:
    check(tomli_w.dumps(data, multiline_strings=multiline))


@settings(max_examples=200, deadline=None)
@given(st.text("ab.=[]{},\"'\\#\n\r\t 1-", max_size=30))
def test_any_text_is_a_document_or_one_finding(text: str) -> None:
    report = Report()
    found = read_document(Source("f.toml", text), report)
    if found is not None:
        assert not len(report)
        check(text)
        return
    (finding,) = report
    assert finding.code in ("syntax", "duplicate-key")
    assert finding.place is not None
    assert 0 <= finding.place.start <= finding.place.end <= len(text)


def test_places_of_tables() -> None:
    text = "[tools.search]\ncall = 'x'\n[[rules]]\na = 1\n[[rules]]\nb = [10, 20]\n"
    found = document(text)

    def words(path: tuple[str | int, ...]) -> tuple[str, str]:
        key, value = found.key_place(path), found.value_place(path)
        assert key is not None
        assert value is not None
        return text[key.start : key.end], text[value.start : value.end]

    assert words(("tools",)) == ("tools", "tools")
    assert words(("tools", "search")) == ("search", "[tools.search]")
    assert words(("tools", "search", "call")) == ("call", "'x'")
    assert words(("rules",)) == ("rules", "[[rules]]")
    assert words(("rules", 1)) == ("rules", "[[rules]]")
    assert words(("rules", 1, "b", 1)) == ("20", "20")
    assert str(found.key_place(("rules", 1))) == "f.toml:5:3"
    assert found.key_place(("tools", "absent")) is None
    assert str(found.key_place(())) == "f.toml:1:1"


def test_too_deep_is_said_and_not_a_crash() -> None:
    for text in ("a = " + "[" * 80 + "]" * 80, "a" + ".a" * 3000 + " = 1", "a = " + "[" * 5000 + "]" * 5000):
        report = Report()
        assert read_document(Source("f.toml", text), report) is None
        assert [finding.code for finding in report] == ["syntax"]
