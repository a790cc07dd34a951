"""`[tools]` to tools: import, derive or compare the schema, wire up what is injected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from runner.build.site import Needed, Site
from runner.config.tools import CallTool, ToolSection
from runner.diag.diagnostic import Path
from runner.records.completion import ToolSpec
from runner.strands.adapted import plain_tool
from runner.tools.callable import CallableTool, Retry
from runner.tools.docstring import read as read_docstring
from runner.tools.injection import Injector, injector
from runner.tools.misfit import Misfit, misfits
from runner.tools.parameters import docstring_of
from runner.tools.signature import SignatureError, derive
from runner.tools.tool import Tool


def build_tools(site: Site) -> dict[str, Tool]:
    """Every tool of the file, by name; one that cannot be built is a finding and left out."""
    built = {name: _build(site, name, section) for name, section in site.config.tools.items()}
    return {name: _approved(site, name, tool) for name, tool in built.items() if tool is not None}


def _approved(site: Site, name: str, tool: Tool) -> Tool:
    rules = site.config.tools[name].approve
    if not rules:
        return tool
    from runner.build.approval import approved

    return approved(site, tool, rules, ("tools", name))


def offered_names(site: Site) -> list[str]:
    """The tools that the workflow may use: those `[workflow] tools` matches, in the order of the file."""
    globs = site.config.workflow.tools
    names = list(site.config.tools)
    if globs is None:
        return names
    return [name for name in names if any(fnmatchcase(name, glob) for glob in globs)]


def _build(site: Site, name: str, section: ToolSection) -> Tool | None:
    if not isinstance(section, CallTool):
        from runner.build.builtins import build_builtin  # 10 ms that only a file with one pays

        return build_builtin(site.config, name, section)
    path: Path = ("tools", name)
    inject = _injectors(site, section, path)
    found = site.find(section.call, (*path, "call"))
    if found is None:
        return None
    function, decorated = plain_tool(found.value)
    if not callable(function):
        site.add(
            "not-callable",
            f"`{section.call.text}` is a {type(function).__name__}, not something to call",
            (*path, "call"),
            label="name a function, sync or async",
        )
        return None
    spec = _of_strands(site, name, section, decorated) or _spec(site, name, section, function, path)
    if spec is None or inject is None:
        return None
    return CallableTool(
        spec,
        function,
        inject=inject,
        timeout=section.timeout or site.config.limits.tool_time,
        limit=section.concurrency,
        retry=Retry(section.retry.attempts, section.retry.on) if section.retry else None,
        max_output=section.max_output,
    )


def _of_strands(site: Site, name: str, section: CallTool, decorated: Mapping[str, Any] | None) -> ToolSpec | None:
    """What Strands' `@tool` says of itself, where the file does not say it."""
    if decorated is None or section.inject or isinstance(section.parameters, Mapping):
        return None
    return ToolSpec(name, section.description or decorated["description"], decorated["inputSchema"]["json"])


def _injectors(site: Site, section: CallTool, path: Path) -> dict[str, Injector] | None:
    built: dict[str, Injector] = {}
    sound = True
    for argument, text in section.inject.items():
        try:
            built[argument] = injector(text)
            if text.startswith("row."):
                where = site.place((*path, "inject", argument), inside=(0, len(text)))
                site.columns.append(Needed((text[4:],), where))
        except ValueError as error:
            site.add("bad-choice", str(error), (*path, "inject", argument))
            sound = False
    return built if sound else None


def _spec(site: Site, name: str, section: CallTool, function: Any, path: Path) -> ToolSpec | None:
    if isinstance(section.parameters, Mapping):
        return _declared(site, name, section, function, path)
    try:
        derived = derive(function, injected=tuple(section.inject))
    except SignatureError as error:
        fact, _, cure = error.message.partition("; ")
        site.add(
            "signature-unusable",
            f"no schema can be derived from `{section.call.text}`: {fact}",
            (*path, "call"),
            label=cure or "mend the signature, or write `parameters` as a JSON Schema",
        )
        return None
    return replace(derived, name=name, description=section.description or derived.description)


def _declared(site: Site, name: str, section: CallTool, function: Any, path: Path) -> ToolSpec | None:
    schema = dict(section.parameters)  # type: ignore[arg-type]
    try:
        found = misfits(function, schema, tuple(section.inject))
    except SignatureError as error:
        message = f"`{section.call.text}` has no signature to compare with the schema: {error}"
        site.add("signature-unusable", message, (*path, "call"), label="wrap it in a function of yours")
        return None
    for misfit in found:
        _report(site, misfit, path, section)
    description = section.description or read_docstring(docstring_of(function)).summary
    return ToolSpec(name, description, schema)


def _report(site: Site, misfit: Misfit, path: Path, section: CallTool) -> None:
    injected: Path = (*path, "inject", misfit.parameter)
    offered = bool(misfit.path_in_schema)
    twice = misfit.kind == "signature-inject" and offered
    where = (*path, "parameters", *misfit.path_in_schema) if offered or "inject" not in misfit.kind else injected
    site.add(
        "signature-unusable" if misfit.kind == "signature-positional" else misfit.kind,
        misfit.message,
        where,
        at_key=misfit.kind != "signature-type",
        label=f"did you mean `{misfit.near}`?" if misfit.near else _cure(misfit, twice=twice),
        notes=(f"compared with `{section.call.text}`",),
        related=((site.place(injected, at_key=True), "injected here"),) if twice else (),
    )


def _cure(misfit: Misfit, *, twice: bool) -> str:
    name = misfit.parameter
    return {
        "signature-extra": "remove it, or let the function take it",
        "signature-missing": f"add `{name}` here, inject it, or give it a default in the function",
        "signature-required": "put it into `required`, or give it a `default`",
        "signature-type": "write what the function's hint says, or change the hint",
        "signature-inject": "remove it here, or from `inject`" if twice else "inject what the function takes",
        "signature-positional": "take the `/` out of the function's parameters",
    }[misfit.kind]
