"""The agents that call tools in a loop of ours, `tools`, `react` and `coding`, each to a factory of workflows."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from runner.build.site import Site
from runner.config.builtins import FinishTool, SandboxedTool
from runner.config.parser import ParserSection
from runner.records.completion import ToolSpec
from runner.records.quick import quick
from runner.tools.mcp.names import wire_name
from runner.workflows.calling import Calling, NativeCalling
from runner.workflows.custom import prepare
from runner.workflows.parsers.parser import Parser
from runner.workflows.tools import ToolsWorkflow
from runner.workflows.workflow import AgentWorkflow

_REACT = ParserSection.model_construct(format="react-text")


@quick
class InText:
    """A factory of workflows whose model is told of its tools in words: over the wire it is offered none."""

    make: Callable[[], AgentWorkflow[Any]]
    offered: tuple[ToolSpec, ...] = ()

    def __call__(self) -> AgentWorkflow[Any]:
        return self.make()


def build_tools_agent(site: Site) -> Callable[[], AgentWorkflow[Any]] | None:
    """The factory for `tools` and `react`, or None with a finding."""
    calling = build_calling(site)
    if calling is None:
        return None
    stop_when = stop_conditions(site)
    return _made(site, lambda: ToolsWorkflow(stop_when, calling))


def build_coding_agent(site: Site) -> Callable[[], AgentWorkflow[Any]] | None:
    """The factory for `coding`, or None with a finding. Raises `ConfigMisfit` for settings that do not fit."""
    from runner.workflows.coding.settings import CodingSettings
    from runner.workflows.coding.workflow import CodingWorkflow

    calling, stop_when = build_calling(site), stop_conditions(site)
    kinds = {name: str(getattr(section, "builtin", "")) for name, section in site.config.tools.items()}

    def make(settings: Any) -> AgentWorkflow[Any]:
        where = settings.sandbox or _sandbox(site)
        return CodingWorkflow(settings, where, kinds, stop_when=stop_when, calling=calling)

    make.__annotations__["settings"] = CodingSettings  # a hint in words is looked up where it cannot be found
    prepared = prepare(make, site.config.workflow.config)
    if calling is None or not _has_sandbox(site, prepared.config.sandbox):
        return None
    return _made(site, prepared)


def _made(site: Site, make: Callable[[], AgentWorkflow[Any]]) -> Callable[[], AgentWorkflow[Any]]:
    return InText(make) if text_format(site) is not None else make


def text_format(site: Site) -> ParserSection | None:
    """`[workflow] parser`, or what its default comes to; None for native tool calls."""
    return site.config.workflow.parser or (_REACT if site.config.agent == "react" else None)


def stop_conditions(site: Site) -> tuple[str, ...]:
    """`[workflow] stop_when`; where nobody wrote it, an answer or a built-in finish tool."""
    workflow = site.config.workflow
    if "stop_when" in workflow.model_fields_set:
        return tuple(wire_name(condition) for condition in workflow.stop_when)
    finish = [f"tool:{name}" for name, section in site.config.tools.items() if isinstance(section, FinishTool)]
    return (*workflow.stop_when, *finish)


def build_calling(site: Site) -> Calling | None:
    """How the model calls tools: natively, or in the format of a parser. None with a finding, or without imports."""
    config = site.config
    section = text_format(site)
    resend = config.workflow.reasoning == "resend"
    if section is None:
        return NativeCalling(resend_reasoning=resend)
    from runner.workflows.calling_text import TextCalling

    parser = _parser(site, section)
    if parser is None:
        return None
    stop = "stop" not in config.sampling.model_fields_set
    return TextCalling(parser, resend_reasoning=resend, stop=stop, instructions=section.instructions)


def _parser(site: Site, section: ParserSection) -> Parser | None:
    from runner.workflows.parsers.named import parser_named
    from runner.workflows.parsers.own import ParserMisfit, RegexParser, own_parser

    if section.format is not None:
        return parser_named(section.format)
    if section.regex is not None:
        try:
            return RegexParser(section.regex)
        except (re.error, OverflowError, RecursionError):
            return None  # a finding of the check of the file
    assert section.call is not None  # one of the three is there
    path = ("workflow", "parser", "call")
    found = site.find(section.call, path)
    if found is None:
        return None
    try:
        return own_parser(found.value)
    except ParserMisfit as misfit:
        site.add("unfit-code", f"`{section.call.text}` cannot be a parser: {misfit}", path,
                 label="name a function from the text of an answer to its calls")  # fmt: skip
        return None


def _sandbox(site: Site) -> str:
    """The sandbox of the first tool that works in one, or the only one there is."""
    config = site.config
    named = [config.sandbox_of(section) for section in config.tools.values() if isinstance(section, SandboxedTool)]
    return next((name for name in (*named, *config.sandboxes) if name), "")


def _has_sandbox(site: Site, name: str | None) -> bool:
    known = list(site.config.sandboxes)
    if name is not None and name not in known:
        listed = f"sandboxes: {', '.join(known)}" if known else "the file declares no sandbox"
        path = ("workflow", "config", "sandbox")
        site.add("unknown-sandbox", f"no sandbox is called `{name}`", path, notes=(listed,))
        return False
    if not known:
        site.add("unknown-sandbox", "the agent `coding` works in a sandbox, and the file has none",
                 ("workflow", "agent"), label="add `[sandboxes.work]`")  # fmt: skip
        return False
    return True
