"""`explain`: why a template could not be rendered, in words of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2.exceptions import SecurityError, UndefinedError

from runner.templates.plain import Variable, spell
from runner.templates.problem import Path, TemplateError
from runner.templates.sandbox import NullValue, near


def explain(error: Exception, variables: list[Variable], names: Mapping[str, Any]) -> TemplateError:
    """The error to raise for what Jinja2 raised."""
    if isinstance(error, NullValue):
        null = next((each.path for each in variables if _is_null(each.path, names)), None)
        return TemplateError(f"`{spell(null)}` is null" if null else "an expression is null", null, null=True)
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
