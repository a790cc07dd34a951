"""`Template` and `Expression`: text with `{{ row.column }}` in it, compiled once, rendered often, strict.

A template made of plain text and references only (nearly all are) is rendered without Jinja2; anything that path
cannot answer goes through Jinja2, which then also finds the words for what is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from runner.templates.plain import Variable, plain
from runner.templates.problem import Path, TemplateError, TemplateProblem, in_text, normal

if TYPE_CHECKING:
    from jinja2 import nodes

__all__ = ["Expression", "Template", "TemplateError", "TemplateProblem", "Variable"]


class Template:
    """A text with expressions. Raises `TemplateProblem` if it is none."""

    def __init__(self, text: str) -> None:
        self.text = text
        found = plain(text)
        if found is not None:
            self._parts: list[str | Path] | None = found.parts
            self.variables = found.variables
            return
        self._parts = _plain_parts(self._tree)
        if self._parts is None:
            self._compile()  # what only compiling finds is found now, not in the middle of a run

    @cached_property
    def _tree(self) -> nodes.Template:
        from runner.templates.syntax import parse

        return parse(self.text)

    @property
    def constant(self) -> bool:
        """True when the text holds no expression at all: it renders as itself."""
        return self._parts is not None and all(isinstance(part, str) for part in self._parts)

    @cached_property
    def variables(self) -> list[Variable]:
        """Every static reference, in order, with its place in the text."""
        return _variables(self._tree, self.text)

    @cached_property
    def _compiled(self) -> Any:
        from runner.templates.sandbox import sandbox

        self.variables  # noqa: B018 (found first: compiling folds constants in the tree)
        return sandbox().from_string(self._tree)

    def _compile(self) -> None:
        from jinja2.exceptions import TemplateSyntaxError

        from runner.templates.syntax import problem_at

        try:
            self._compiled  # noqa: B018 (a cached property)
        except TemplateSyntaxError as error:
            raise problem_at(self.text, error.message or "", error.lineno - 1) from None

    def render(self, **names: Any) -> str:
        """The text with every expression replaced.

        Strings are written as they are, numbers as Python writes them, booleans as `true` and `false`, lists and
        tables as JSON. Raises `TemplateError` for a missing name, a null and whatever else goes wrong.
        """
        if self._parts is not None:
            found = [part if isinstance(part, str) else _resolve(part, names) for part in self._parts]
            if not any(value is None for value in found):
                return "".join([value if isinstance(value, str) else _text(value) for value in found])
        try:
            compiled = self._compiled
            return "".join(compiled.root_render_func(compiled.new_context(names)))
        except Exception as error:
            from runner.templates.explain import explain

            raise explain(error, self.variables, names) from None


class Expression:
    """One Jinja2 expression: `row.level > 3 and "x" in last`. Raises `TemplateProblem` if it is none."""

    def __init__(self, text: str) -> None:
        from runner.templates.syntax import parse_expression

        self.text = text
        self._tree = parse_expression(text)

    @cached_property
    def variables(self) -> list[Variable]:
        """Every static reference, in order, with its place in the text."""
        return _variables(self._tree, self.text)

    @cached_property
    def _compiled(self) -> Any:
        from jinja2 import nodes

        from runner.templates.sandbox import sandbox

        self.variables  # noqa: B018 (as in Template)
        target = nodes.Name("result", "store", lineno=1)
        body: list[nodes.Node] = [nodes.Assign(target, self._tree, lineno=1)]
        tree = nodes.Template(body, lineno=1)
        return sandbox().from_string(tree)

    def evaluate(self, **names: Any) -> Any:
        """The value of the expression. Raises `TemplateError` as `Template.render` does; null is a value."""
        from runner.templates.sandbox import sandbox

        compiled = self._compiled
        try:
            context = compiled.new_context(names)
            for _ in compiled.root_render_func(context):
                pass
            result = context.vars["result"]
            if isinstance(result, sandbox().undefined):
                str(result)  # a missing name speaks up
        except Exception as error:
            from runner.templates.explain import explain

            raise explain(error, self.variables, names) from None
        return result


def _variables(tree: nodes.Node, text: str) -> list[Variable]:
    from runner.templates.sandbox import sandbox
    from runner.templates.variables import find_variables

    found = find_variables(tree, normal(text), sandbox().globals)
    if "\r\n" not in text:
        return found
    moved = []
    for variable in found:
        start = in_text(text, variable.offset)
        end = in_text(text, variable.offset + variable.length)
        moved.append(Variable(variable.path, start, end - start, variable.optional))
    return moved


def _plain_parts(tree: nodes.Template) -> list[str | Path] | None:
    """Texts and paths in order if the template is made of nothing else, else None."""
    from jinja2 import nodes

    from runner.templates.variables import path_of

    parts: list[str | Path] = []
    for output in tree.body:
        if not isinstance(output, nodes.Output):
            return None
        for node in output.nodes:
            part = node.data if isinstance(node, nodes.TemplateData) else path_of(node)
            if part is None:
                return None
            parts.append(part)
    return parts


def _resolve(path: Path, names: Mapping[str, Any]) -> Any:
    """The value at `path`, or None where only Jinja2 can tell (missing, null, an attribute of something)."""
    value: Any = names
    for step in path:
        if not isinstance(value, Mapping) or step not in value:
            return None
        value = value[step]
    return value


def _text(value: Any) -> Any:
    """As `sandbox.to_text`, which knows the rest: a number needs no Jinja2."""
    if type(value) in (int, float):
        return str(value)
    from runner.templates.sandbox import to_text

    return to_text(value)
