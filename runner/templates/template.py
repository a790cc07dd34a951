"""`Template` and `Expression`: text with `{{ row.column }}` in it, compiled once, rendered often, strict.

A template made of plain text and references only (nearly all are) is rendered without Jinja2; anything that path
cannot answer goes through Jinja2, which then also finds the words for what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateSyntaxError, UndefinedError
from jinja2.parser import Parser

from runner.templates.sandbox import LexingFailed, NullValue, near, nearest, sandbox, to_text
from runner.templates.variables import Path, Variable, find_variables, path_of, spell

__all__ = ["Expression", "Template", "TemplateError", "TemplateProblem", "Variable"]


class TemplateProblem(Exception):  # noqa: N818 (a finding about a text, not a failure of ours)
    """The text is not a template. `offset` and `length` are characters inside it; `offset` is None if unknown."""

    def __init__(self, message: str, offset: int | None = None, length: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.length = length


class TemplateError(Exception):
    """A template could not be rendered with these names. `path` is the reference at fault, where it is known."""

    def __init__(self, message: str, path: Path | None = None) -> None:
        super().__init__(message)
        self.path = path


class Template:
    """A text with expressions. Raises `TemplateProblem` if it is none."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tree = _parse(text)
        self._parts = _plain_parts(self._tree)
        if self._parts is None:
            self._compile()  # what only compiling finds is found now, not in the middle of a run

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
        return sandbox().from_string(self._tree)

    def _compile(self) -> None:
        try:
            self._compiled  # noqa: B018 (a cached property)
        except TemplateSyntaxError as error:
            raise _problem(self.text, error.message or "", error.lineno - 1) from None

    def render(self, **names: Any) -> str:
        """The text with every expression replaced.

        Strings are written as they are, numbers as Python writes them, booleans as `true` and `false`, lists and
        tables as JSON. Raises `TemplateError` for a missing name, a null and whatever else goes wrong.
        """
        if self._parts is not None:
            found = [part if isinstance(part, str) else _resolve(part, names) for part in self._parts]
            if not any(value is None for value in found):
                return "".join([value if isinstance(value, str) else to_text(value) for value in found])
        try:
            compiled = self._compiled
            return "".join(compiled.root_render_func(compiled.new_context(names)))
        except Exception as error:
            raise _explain(error, self.variables, names) from None


class Expression:
    """One Jinja2 expression: `row.level > 3 and "x" in last`. Raises `TemplateProblem` if it is none."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._tree = _parse_expression(text)

    @cached_property
    def variables(self) -> list[Variable]:
        """Every static reference, in order, with its place in the text."""
        return _variables(self._tree, self.text)

    @cached_property
    def _compiled(self) -> Any:
        target = nodes.Name("result", "store", lineno=1)
        body: list[nodes.Node] = [nodes.Assign(target, self._tree, lineno=1)]
        tree = nodes.Template(body, lineno=1)
        return sandbox().from_string(tree)

    def evaluate(self, **names: Any) -> Any:
        """The value of the expression. Raises `TemplateError` as `Template.render` does; null is a value."""
        compiled = self._compiled
        try:
            context = compiled.new_context(names)
            for _ in compiled.root_render_func(context):
                pass
            result = context.vars["result"]
            if isinstance(result, sandbox().undefined):
                str(result)  # a missing name speaks up
        except Exception as error:
            raise _explain(error, self.variables, names) from None
        return result


def _has_markup(text: str) -> bool:
    return "{{" in text or "{%" in text or "{#" in text


def _normal(text: str) -> str:
    """Jinja2 reads every line end as `\\n`."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def _in_text(text: str, offset: int) -> int:
    """The place in the author's text of an offset in the text Jinja2 read, where `\\r\\n` is one character."""
    if "\r\n" not in text:
        return offset
    for found in re.finditer("\r\n", text):
        if found.start() >= offset:
            break
        offset += 1
    return offset


def _parse(text: str) -> nodes.Template:
    if not _has_markup(text):
        data: list[nodes.Expr] = [nodes.TemplateData(_normal(text), lineno=1)] if text else []
        return nodes.Template([nodes.Output(data, lineno=1)], lineno=1)
    try:
        tree = Parser(sandbox(), _normal(text)).parse()
    except LexingFailed as failure:
        raise _problem(text, str(failure), failure.offset) from None
    except TemplateSyntaxError as error:
        raise _problem(text, error.message or "", error.lineno - 1) from None
    _forbid(text, tree)
    return tree


def _parse_expression(text: str) -> nodes.Expr:
    if not text.strip():
        raise TemplateProblem("an expression is empty", 0, max(len(text), 1))
    try:
        parser = Parser(sandbox(), _normal(text), state="variable")
        tree = parser.parse_expression()
        if not parser.stream.eos:
            raise TemplateSyntaxError("this does not belong to the expression", parser.stream.current.lineno)
    except LexingFailed as failure:
        raise _problem(text, str(failure), failure.offset) from None
    except TemplateSyntaxError as error:
        raise _problem(text, error.message or "", error.lineno - 1) from None
    _forbid(text, tree)
    return tree


_OUTSIDE = {
    nodes.Include: "include",
    nodes.Import: "import",
    nodes.FromImport: "from … import",
    nodes.Extends: "extends",
}


def _forbid(text: str, tree: nodes.Node) -> None:
    """Refuse what reaches outside the text, and filters and tests that do not exist."""
    for kind, word in _OUTSIDE.items():
        for outside in tree.find_all(kind):
            offset = _in_text(text, outside.lineno - 1)
            raise TemplateProblem(f"`{word}` is not available: a template is one text", offset, len(word.split()[0]))
    named: list[nodes.Node] = [tree, *tree.find_all((nodes.Filter, nodes.Test))]
    for node in named:
        if isinstance(node, nodes.Filter | nodes.Test):
            what, known = ("filter", sandbox().filters) if isinstance(node, nodes.Filter) else ("test", sandbox().tests)
            if node.name not in known:
                at = re.compile(rf"\b{re.escape(node.name)}\b").search(text, _in_text(text, node.lineno - 1))
                start = at.start() if at else _in_text(text, node.lineno - 1)
                message = f"there is no {what} `{node.name}`{nearest(node.name, known)}"
                raise TemplateProblem(message, start, len(node.name))


_WORDS = (
    (r"end of print statement", "}}"),
    (r"end of statement block", "%}"),
    (r"begin of print statement", "{{"),
    (r"begin of statement block", "{%"),
    (
        r"unexpected end of template\. Jinja was looking for the following tags: (.+?)\. .* closed is (`.+?`)",
        r"\2 is not closed: expected \1",
    ),
    (r"unexpected end of template, expected `}}`", "`{{` is not closed: expected `}}`"),
    (r"unexpected `end of template`", "the expression ends too early"),
    (r", got ", ", found "),
)


def _problem(text: str, message: str, offset: int) -> TemplateProblem:
    """Jinja2's words, put into ours, with the place the words are about."""
    unexpected = re.fullmatch(r"unexpected char (.+) at (\d+)", message)
    if unexpected:
        quote = unexpected[1] in ('"\'"', "'\"'")
        message = "this string is not closed" if quote else f"unexpected character {unexpected[1]}"
        offset = int(unexpected[2])
    message = message.replace("'", "`").rstrip(".")
    message = message[:1].lower() + message[1:]
    for theirs, ours in _WORDS:
        message = re.sub(theirs, ours, message)
    offset = _in_text(text, offset)
    word = re.compile(r"\w+|\}\}|%\}|\{\{|\{%|\S").match(text, offset)
    start = min(offset, max(len(text) - 1, 0))
    return TemplateProblem(message, start, len(word[0]) if word else 1)


def _variables(tree: nodes.Node, text: str) -> list[Variable]:
    found = find_variables(tree, _normal(text), sandbox().globals)
    if "\r\n" not in text:
        return found
    moved = []
    for variable in found:
        start = _in_text(text, variable.offset)
        end = _in_text(text, variable.offset + variable.length)
        moved.append(Variable(variable.path, start, end - start, variable.optional))
    return moved


def _plain_parts(tree: nodes.Template) -> list[str | Path] | None:
    """Texts and paths in order if the template is made of nothing else, else None."""
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


def _explain(error: Exception, variables: list[Variable], names: Mapping[str, Any]) -> TemplateError:
    if isinstance(error, NullValue):
        null = next((each.path for each in variables if _is_null(each.path, names)), None)
        return TemplateError(f"`{spell(null)}` is null" if null else "an expression is null", null)
    if isinstance(error, UndefinedError):
        return _explain_missing(error, variables, names)
    if isinstance(error, SecurityError):
        return TemplateError(f"not allowed in a template: {error}")
    return TemplateError(f"{type(error).__name__}: {error}")


def _is_null(path: Path, names: Mapping[str, Any]) -> bool:
    value: Any = names
    for step in path:
        if not isinstance(value, Mapping) or step not in value:
            return False
        value = value[step]
    return value is None


def _explain_missing(error: UndefinedError, variables: list[Variable], names: Mapping[str, Any]) -> TemplateError:
    """Name the first reference that leads nowhere: Jinja2 knows only its last step."""
    for variable in variables:
        value: Any = names
        for depth, step in enumerate(variable.path):
            if variable.optional or not isinstance(value, Mapping):
                break
            if step not in value:
                return _missing(variable.path[: depth + 1], value)
            value = value[step]
    return TemplateError(str(error))


def _missing(path: Path, holder: Mapping[str, Any]) -> TemplateError:
    if len(path) == 1:
        return TemplateError(f"`{path[0]}` is not defined{near(path[0], holder)}", path)
    return TemplateError(f"`{spell(path[:-1])}` has no `{path[-1]}`{near(path[-1], holder)}", path)
