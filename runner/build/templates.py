"""Templates of the file, compiled and checked: syntax, and every name they use."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias, TypeVar

from runner.build.importing import from_here
from runner.build.site import Needed, Site
from runner.config.reference import Text
from runner.diag.diagnostic import Diagnostic, Place, Source
from runner.diag.diagnostic import Path as KeyPath
from runner.diag.suggest import nearest
from runner.templates.template import Expression, Template, TemplateProblem, Variable

T = TypeVar("T", bound=Template | Expression)
Placing: TypeAlias = Callable[[int, int], Place | None]
"""From offset and length in the template to the place in the file that says it."""


def compile_text(site: Site, text: Text, path: KeyPath, names: Collection[str]) -> Template | None:
    """A `"…"` or `{ file = "…" }` template that may use `names`; None when it is none, with a finding."""
    if text.file is None:
        return compile_template(site, text.text, path, names)
    source = Source(_shown(text), text.text)
    return _compile(site, Template, text.text, names, lambda offset, length: Place(source, offset, offset + length))


def compile_template(site: Site, text: str, path: KeyPath, names: Collection[str]) -> Template | None:
    """A template that the TOML itself holds at `path`."""
    return _compile(site, Template, text, names, lambda at, length: site.place(path, inside=(at, length)))


def compile_key(site: Site, text: str, path: KeyPath, names: Collection[str]) -> Template | None:
    """A template that is itself a key of a table: findings are at the key as a whole."""
    return _compile(site, Template, text, names, lambda at, length: site.place(path, at_key=True))


def compile_guess(site: Site, kind: type[T], text: str, path: KeyPath, names: Collection[str]) -> T | None:
    """A template or expression of a scripted rule: it may name columns that only some rows have."""
    place = lambda at, length: site.place(path, inside=(at, length))  # noqa: E731
    return _compile(site, kind, text, names, place, needed=False)


def _compile(
    site: Site, kind: type[T], text: str, names: Collection[str], place: Placing, *, needed: bool = True
) -> T | None:
    try:
        template = kind(text)
    except TemplateProblem as problem:
        where = place(problem.offset or 0, max(problem.length, 1) if problem.offset is not None else max(len(text), 1))
        fact, label = _cure(text, problem, kind)
        site.report.add(Diagnostic("template-syntax", f"this {_noun(kind)} cannot be read: {fact}", where, label))
        return None
    sound = True
    for variable in template.variables:
        where = place(variable.offset, variable.length)
        if variable.path[0] not in names:
            site.report.add(_unknown(variable, names, where, _noun(kind)))
            sound = False
        elif needed and variable.path[0] == "row" and len(variable.path) > 1 and not variable.optional:
            cure = f"if it may be missing, write `{variable} | default('')`"
            site.columns.append(Needed(variable.path[1:], where, cure))
    return template if sound else None


def _noun(kind: type[Any]) -> str:
    return "template" if issubclass(kind, Template) else "expression"


def _cure(text: str, problem: TemplateProblem, kind: type[Any]) -> tuple[str, str]:
    """What is wrong and what to do about it."""
    fact, _, meant = problem.message.partition("; did you mean ")
    if meant:
        return fact, f"did you mean {meant}"
    at = text[problem.offset : problem.offset + 1] if problem.offset is not None else ""
    opened = re.match(r"`(\w+)` is not closed", fact)
    if opened:
        return f"`{{% {opened[1]} %}}` is never closed", f"close it with `{{% end{opened[1]} %}}`"
    if at == "}" and kind is Template:
        return fact, "an expression ends with `}}`"
    if at and "does not belong to the expression" in fact:
        return f"`{at}` cannot stand here", "`==` compares" if at == "=" else ""
    if "ends too early" in fact:
        return fact, "something is missing behind this"
    return fact, "put that text here" if "is one text" in fact else ""


def _unknown(variable: Variable, names: Collection[str], where: Place | None, noun: str) -> Diagnostic:
    name = variable.path[0]
    near = nearest(name, names)
    known: Sequence[str] = sorted(names)
    label = f"did you mean `{near}`?" if near else ""
    if not near and "row" in names:
        label = f"a column of the dataset is `row.{name}`"
    return Diagnostic(
        "unknown-variable",
        f"this {noun} has no variable `{name}`",
        where,
        label,
        notes=(f"it may use: {', '.join(f'`{word}`' for word in known)}",),
    )


def _shown(text: Text) -> str:
    assert text.file is not None
    return from_here(text.file.path)
