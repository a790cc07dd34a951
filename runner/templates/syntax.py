"""From a text to Jinja2's tree, or to a `TemplateProblem` that has a place and words of ours."""

from __future__ import annotations

import re

from jinja2 import nodes
from jinja2.exceptions import TemplateSyntaxError
from jinja2.parser import Parser

from runner.templates.problem import TemplateProblem, in_text, normal
from runner.templates.sandbox import LexingFailed, nearest, sandbox


def _has_markup(text: str) -> bool:
    return "{{" in text or "{%" in text or "{#" in text


def parse(text: str) -> nodes.Template:
    """The tree of a template; `lineno` of its nodes is an offset plus one. Raises `TemplateProblem`."""
    if not _has_markup(text):
        data: list[nodes.Expr] = [nodes.TemplateData(normal(text), lineno=1)] if text else []
        return nodes.Template([nodes.Output(data, lineno=1)], lineno=1)
    try:
        tree = Parser(sandbox(), normal(text)).parse()
    except LexingFailed as failure:
        raise problem_at(text, str(failure), failure.offset) from None
    except TemplateSyntaxError as error:
        raise problem_at(text, error.message or "", error.lineno - 1) from None
    _forbid(text, tree)
    return tree


def parse_expression(text: str) -> nodes.Expr:
    """The tree of one expression, as `parse` gives it. Raises `TemplateProblem`."""
    if not text.strip():
        raise TemplateProblem("an expression is empty", 0, max(len(text), 1))
    try:
        parser = Parser(sandbox(), normal(text), state="variable")
        tree = parser.parse_expression()
        if not parser.stream.eos:
            raise TemplateSyntaxError("this does not belong to the expression", parser.stream.current.lineno)
    except LexingFailed as failure:
        raise problem_at(text, str(failure), failure.offset) from None
    except TemplateSyntaxError as error:
        raise problem_at(text, error.message or "", error.lineno - 1) from None
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
            offset = in_text(text, outside.lineno - 1)
            raise TemplateProblem(f"`{word}` is not available: a template is one text", offset, len(word.split()[0]))
    named: list[nodes.Node] = [tree, *tree.find_all((nodes.Filter, nodes.Test))]
    for node in named:
        if isinstance(node, nodes.Filter | nodes.Test):
            what, known = ("filter", sandbox().filters) if isinstance(node, nodes.Filter) else ("test", sandbox().tests)
            if node.name not in known:
                at = re.compile(rf"\b{re.escape(node.name)}\b").search(text, in_text(text, node.lineno - 1))
                start = at.start() if at else in_text(text, node.lineno - 1)
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


_TAG = re.compile(r"\{%[-+]?\s*(end)?(\w+)")


def _opening(text: str, word: str, otherwise: int) -> int:
    """Where the block `word` that is never closed begins: the last one that no `end` belongs to."""
    open_at: list[int] = []
    for tag in _TAG.finditer(text):
        if tag[2] == word and tag[1]:
            del open_at[-1:]
        elif tag[2] == word:
            open_at.append(tag.start(2))
    return open_at[-1] if open_at else otherwise


def problem_at(text: str, message: str, offset: int) -> TemplateProblem:
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
    offset = in_text(text, offset)
    unclosed = re.match(r"`(\w+)` is not closed", message)
    if unclosed:
        offset = _opening(text, unclosed[1], offset)
    word = re.compile(r"\w+|\}\}|%\}|\{\{|\{%|\S").match(text, offset)
    start = min(offset, max(len(text) - 1, 0))
    return TemplateProblem(message, start, len(word[0]) if word else 1)
