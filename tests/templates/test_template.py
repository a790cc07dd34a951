"""What a template renders, what it refuses, and where it says the problem is."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.templates.template import Expression, Template, TemplateError, TemplateProblem

ROW = {
    "question": "Why?",
    "number": 1.0,
    "whole": 7,
    "yes": True,
    "null": None,
    "list": [1, "é"],
    "items": "a column, not a method",
    "meta": {"level": 3, "two words": "ok"},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("", ""),
        ("{# a comment #}x\n", "x\n"),
        ("{{ row.question }}", "Why?"),
        ("{{ row.number }}|{{ row.whole }}|{{ row.yes }}", "1.0|7|true"),
        ("{{ row.list }}", '[1, "é"]'),
        ("{{ row.meta }}", '{"level": 3, "two words": "ok"}'),
        ("{{ row.items }}", "a column, not a method"),
        ('{{ row["meta"]["two words"] }}', "ok"),
        ("{{ row.list | tojson }}!", '[1, "é"]!'),
        ("{% for x in row.list %}{{ loop.index }}{{ x }},{% endfor %}", "11,2é,"),
        ("{{ row.absent | default('-') }}", "-"),
        ("{{ row.get('absent', '-') }}", "-"),
        ("{% if row.absent is defined %}{{ row.absent }}{% else %}none{% endif %}", "none"),
        ("<{{ row.question.upper() }}>", "<WHY?>"),
        ("a\r\n{{ row.whole }}\r\n", "a\n7\n"),
        ("a\r\nb", "a\nb"),
    ],
)
def test_renders(text: str, expected: str) -> None:
    assert Template(text).render(row=ROW, label=None) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{{ row.null }}", "`row.null` is null"),
        ("{{ row.null }}{{ 1 + 1 }}", "`row.null` is null"),
        ("{{ row.questoin }}", "`row` has no `questoin`; did you mean `question`?"),
        ("{{ row.meta.zzz }}", "`row.meta` has no `zzz`; there is `level`, `two words`"),
        ("{{ row.meta.zzz.deeper }}", "`row.meta` has no `zzz`; there is `level`, `two words`"),
        ("{{ row.question.zzz }}", "a string has no `zzz`"),
        ("{{ rwo.question }}", "`rwo` is not defined; did you mean `row`?"),
        ("{{ row[row.question] }}", "there is no `Why?`"),
        ("{{ row.list.append(1) }}", "not allowed in a template"),
        ("{{ row.__class__ }}", "not allowed in a template"),
        ("{{ row.meta.keys }}", "has no `keys`"),
        ("{{ range }}", "not a value"),
        ("{{ none }}", "an expression is null"),
        ("{{ 1 / 0 }}", "ZeroDivisionError: division by zero"),
        ("{{ 'a' * 1000000000 }}", "the result of `*` is too large"),
        ("{{ 9 ** 99999999 }}", "too large"),
        ("{{ 'a' | center(1000000000) }}", "too large"),
        ("{{ 'a'.ljust(1000000000) }}", "too large"),
        ("{% for x in range(1000000000) %}x{% endfor %}", "Range too big"),
        ("{{ row.absent | tojson }}", "has no `absent`"),
    ],
)
def test_refuses_to_render(text: str, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        Template(text).render(row=ROW)
    assert message in str(caught.value)


def test_error_names_the_path() -> None:
    with pytest.raises(TemplateError) as caught:
        Template("{{ row.question }} {{ row.meta.zzz }}").render(row=ROW)
    assert caught.value.path == ("row", "meta", "zzz")


@pytest.mark.parametrize(
    ("text", "message", "pointed"),
    [
        ("{{ row.x ", "`{{` is not closed: expected `}}`", "x"),
        ("line\r\n\r\n{{ row.x $ }}", "unexpected character `$`", "$"),
        ("{{ 'abc }}", "this string is not closed", "'"),
        ("{{ b c }}", "expected token `}}`, found `c`", "c"),
        ("{{ }}", "expected an expression, found `}}`", "}}"),
        ("{% for x in row %}", "`for` is not closed: expected `endfor` or `else`", "for"),
        ("{% foo %}", "encountered unknown tag `foo`", "foo"),
        ("a {% include 'x' %}", "`include` is not available: a template is one text", "include"),
        ("{% import 'x' as y %}", "`import` is not available: a template is one text", "import"),
        ("{{ row.x | uper }}", "there is no filter `uper`; did you mean `upper`?", "uper"),
        ("{{ row.x is defned }}", "there is no test `defned`; did you mean `defined`?", "defned"),
        ("{% block a %}{% endblock %}{% block a %}{% endblock %}", "block `a` defined twice", "block"),
    ],
)
def test_problem_has_a_place(text: str, message: str, pointed: str) -> None:
    with pytest.raises(TemplateProblem) as caught:
        Template(text)
    problem = caught.value
    assert problem.message == message
    assert problem.offset is not None
    assert text[problem.offset : problem.offset + problem.length] == pointed


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{{ row.a }} {{ label }}", [("row.a", "row.a", False), ("label", "label", False)]),
        ("{{ row['a'].b }}", [("row.a.b", "row['a'].b", False)]),
        ("x\r\n{{ row . a }}", [("row.a", "row . a", False)]),
        ("  {%- if row.a -%}\n {{ row.b }}{% endif %}", [("row.a", "row.a", False), ("row.b", "row.b", False)]),
        ("{% for x in row.xs if x.ok %}{{ x }}{{ y }}{% endfor %}", [("row.xs", "row.xs", False), ("y", "y", False)]),
        ("{% set z = row.a %}{{ z }}", [("row.a", "row.a", False)]),
        ("{% macro m(p) %}{{ p }}{{ q }}{% endmacro %}{{ m(row.a) }}", [("q", "q", False), ("row.a", "row.a", False)]),
        ("{% with v = row.a %}{{ v }}{% endwith %}{{ v }}", [("row.a", "row.a", False), ("v", "v", False)]),
        ("{{ row.a | default(row.b) }}", [("row.a", "row.a", True), ("row.b", "row.b", False)]),
        ("{{ row.a if row.a is defined else row.b }}", [("row.a", "row.a", True)] * 2 + [("row.b", "row.b", False)]),
        ("{% if 'a' in row %}{{ row.a }}{% endif %}", [("row", "row", False), ("row.a", "row.a", True)]),
        ("{{ row.get('a') }}{{ row.b.strip() }}", [("row.a", "row", True), ("row.b", "row.b", False)]),
        ("{{ row[key] }}", [("row", "row", False), ("key", "key", False)]),
        ("{{ range(3) }}{# row.a #}{% raw %}{{ row.b }}{% endraw %}", []),
    ],
)
def test_variables(text: str, expected: list[tuple[str, str, bool]]) -> None:
    found = Template(text).variables
    assert sorted((str(v), text[v.offset : v.offset + v.length], v.optional) for v in found) == sorted(expected)
    assert [v.offset for v in found] == sorted(v.offset for v in found)


NAME = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(lambda n: n not in {"range", "dict", "namespace"})
KEYWORDS = {
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "else",
    "true",
    "false",
    "none",
    "import",
    "recursive",
    "self",
    "super",
}
PLAIN = st.text(alphabet="abc \r\n\té{}%#\U0001f600", max_size=12).filter(
    lambda text: not any(mark in text + "{" for mark in ("{{", "{%", "{#")) and not text.endswith("\r")
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(PLAIN, NAME.filter(lambda n: n not in KEYWORDS), st.lists(NAME, max_size=3)), max_size=5))
def test_every_reference_is_found_where_it_stands(pieces: list[tuple[str, str, list[str]]]) -> None:
    text, expected = "", []
    for plain, root, steps in pieces:
        written = root + "".join(f"['{step}']" if len(step) % 2 else f".{step}" for step in steps)
        text += plain + "{{ "
        expected.append(((root, *steps), len(text), len(written)))
        text += written + " }}"
    found = Template(text).variables
    assert [(v.path, v.offset, v.length) for v in found] == expected


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(
        st.booleans() | st.integers() | st.text(max_size=5) | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=5,
    )
)
def test_the_direct_path_agrees_with_jinja(value: object) -> None:
    direct = Template("<{{ row.x }}>").render(row={"x": value})
    through_jinja = Template("<{{ row.x }}>{% if true %}{% endif %}").render(row={"x": value})
    assert direct == through_jinja


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="{}%#'\" \r\nab.|()[]1-", max_size=25))
def test_any_text_is_a_template_or_a_problem_inside_it(text: str) -> None:
    try:
        Template(text).variables  # noqa: B018
    except TemplateProblem as problem:
        assert problem.offset is not None
        assert 0 <= problem.offset <= len(text)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="{}%#'\" \r\nab.|()[]1-", max_size=25))
def test_any_text_is_an_expression_or_a_problem_inside_it(text: str) -> None:
    try:
        Expression(text).variables  # noqa: B018
    except TemplateProblem as problem:
        assert problem.offset is not None
        assert 0 <= problem.offset <= len(text)


def test_constant() -> None:
    assert Template("no expression {# at all #}").constant
    assert not Template("{{ row.x }}").constant
    assert not Template("{% if true %}{% endif %}").constant


def test_expression() -> None:
    expression = Expression("row.whole > 3 and 'y' in row.question")
    assert expression.evaluate(row=ROW) is True
    assert [(str(v), v.offset) for v in expression.variables] == [("row.whole", 0), ("row.question", 25)]
    assert Expression("row.null").evaluate(row=ROW) is None
    assert Expression("row.list").evaluate(row=ROW) == [1, "é"]


@pytest.mark.parametrize(
    ("text", "message", "offset"),
    [
        ("", "an expression is empty", 0),
        ("row.x +", "the expression ends too early", 6),
        ("a b", "this does not belong to the expression", 2),
        ("a $", "unexpected character `$`", 2),
        ("a | uper", "there is no filter `uper`; did you mean `upper`?", 4),
    ],
)
def test_expression_problem(text: str, message: str, offset: int) -> None:
    with pytest.raises(TemplateProblem) as caught:
        Expression(text)
    assert (caught.value.message, caught.value.offset) == (message, offset)


def test_expression_error() -> None:
    with pytest.raises(TemplateError, match=r"`row` has no `zzz`"):
        Expression("row.zzz").evaluate(row={"a": 1})


def test_the_room_is_imported_only_by_who_needs_it() -> None:
    code = "import sys, runner.datasets.open, runner.store.journal; print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
