"""What is read without Jinja2 is what Jinja2 would have read."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.templates.plain import plain
from runner.templates.problem import TemplateError, TemplateProblem, normal
from runner.templates.sandbox import sandbox
from runner.templates.syntax import parse
from runner.templates.template import Template, _plain_parts
from runner.templates.variables import find_variables

PIECES = st.sampled_from(
    ["{{ row.question }}", "{{row.a.b}}", "{{ label }}", "{{ true }}", "{{ range }}", "{{ row.not }}", "{{ not }}",
     "{{ row . a }}", "{{- row.a }}", "{{ row.a -}}", "{{\nrow.a }}", "{{", "}}", "{%", "%}", "{#", "#}", "{", "}",
     "\n", "\r\n", " ", "a", "{{ row['a'] }}", "{{ row.a }", "{{ _x }}", "{{ row.é }}", "{{ 1 }}", "{{ loop }}",
     "{% raw %}", "{% endraw %}", "##"]
)  # fmt: skip


@settings(max_examples=400)
@given(st.lists(st.one_of(PIECES, st.text(max_size=3)), max_size=6).map("".join))
def test_plain_and_jinja_agree(text: str) -> None:
    found = plain(text)
    if found is None:
        return
    try:
        tree = parse(text)
    except TemplateProblem as problem:
        raise AssertionError(f"Jinja2 refuses {text!r}: {problem}") from problem
    parts = _plain_parts(tree)
    assert parts is not None
    assert _joined(parts) == _joined(found.parts)
    assert find_variables(tree, normal(text), sandbox().globals) == found.variables


def _joined(parts: list[str | tuple[str, ...]]) -> list[str | tuple[str, ...]]:
    joined: list[str | tuple[str, ...]] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        elif part != "":
            joined.append(part)
    return joined


def test_a_plain_template_renders_without_jinja() -> None:
    code = (
        "import sys\n"
        "from runner.templates.template import Template\n"
        "template = Template('Q: {{ row.question }} ({{ row.level }})')\n"
        "assert template.render(row={'question': 'why?', 'level': 3}) == 'Q: why? (3)'\n"
        "assert [str(each) for each in template.variables] == ['row.question', 'row.level']\n"
        "assert 'jinja2' not in sys.modules, 'jinja2 was imported'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_missing_name_is_still_explained() -> None:
    with pytest.raises(TemplateError) as caught:
        Template("{{ row.qestion }}").render(row={"question": "why?"})
    assert str(caught.value) == "`row` has no `qestion`; did you mean `question`?"
    assert caught.value.path == ("row", "qestion")
