"""What an agent of the third seed is played with when there is no file: a plan made of its settings and tools."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.agentic.adapted import adapt, adapted
from runner.tools.tool import Tool

if TYPE_CHECKING:
    from runner.agentic.agent import BaseAgent
    from runner.build.plan import Plan

TOOL_SECONDS = 600.0
_LIMITS = {"limits.time": "24h", "limits.tool_time": "10m"}
"""The seed knows no limit but that of steps; a call that never ends still has to."""

_ALIASES = {"bash_executor": "bash"}
_SANDBOXED = ("bash", "python", "file_editor", "search")
_CLASS = ("class", "class_name")


def own_tools(agent: BaseAgent) -> dict[str, Tool]:
    """The tools that the agent was given, and those that its `tools_config` names by class. Raises TypeError."""
    if agent._adapted is None:
        _, made = _read(agent)
        agent._adapted = {**made, **adapted(agent.tools, timeout=TOOL_SECONDS)}
    return agent._adapted


def staged(agent: BaseAgent, *, native: bool) -> Plan:
    """The plan that the agent is played by, its own tools aside. Raises ValueError for settings that cannot be."""
    known = agent._plans.get(native)
    if known is None:
        known = agent._plans[native] = _plan(agent, native)
    return known


def _plan(agent: BaseAgent, native: bool) -> Plan:
    from runner.diag.diagnostic import ConfigError
    from runner.sdk.hosted_app import plan_of

    tools, _ = _read(agent)
    own = agent.settings(native=native)
    turns = max(1000, agent.max_steps)
    settings = {"workflow.name": "trajectory", "limits.turns": turns, **_LIMITS, **own, **tools}
    settings = {key: value for key, value in settings.items() if _is_kept(key, agent)}
    with tempfile.TemporaryDirectory(prefix="osmosis-run-") as folder:
        try:
            return plan_of(settings, Path(folder), type(agent).__name__)
        except ConfigError as error:
            said = "; ".join(_said(each) for each in error.report)
            raise ValueError(f"{type(agent).__name__} cannot be played: {said}") from None


def _said(finding: Any) -> str:
    return f"{finding.message} ({finding.label})" if finding.label else str(finding.message)


def _is_kept(key: str, agent: BaseAgent) -> bool:
    """A tool that was given takes the place of a built-in one of its name."""
    parts = key.split(".")
    return parts[0] != "tools" or parts[1] not in agent.tools


def _read(agent: BaseAgent) -> tuple[dict[str, Any], dict[str, Tool]]:
    """`tools_config`: settings of built-in tools by dotted key, and tools of classes by name."""
    config = agent.tools_config
    settings: dict[str, Any] = {}
    made: dict[str, Tool] = {}
    for name, section in config.items():
        if name == "sandbox":
            settings |= {f"sandboxes.work.{key}": value for key, value in _table(name, section).items()}
        elif name == "tools":
            for each in section:
                tool = _of_class(None, _table("tools", each))
                made[tool.spec.name] = tool
        elif any(key in _table(name, section) for key in _CLASS):
            made[name] = _of_class(name, section)
        else:
            settings |= _builtin(name, _table(name, section), agent)
    kinds = {value for key, value in settings.items() if key.endswith(".builtin")}
    if kinds & set(_SANDBOXED) and not any(key.startswith("sandboxes.") for key in settings):
        settings["sandboxes.work.kind"] = "bubblewrap"
    return settings, made


def _table(name: str, section: Any) -> dict[str, Any]:
    if section is None:
        return {}
    if not isinstance(section, Mapping):
        raise ValueError(f"tools_config[{name!r}] is a table of settings, found {type(section).__name__}")
    return dict(section)


def _builtin(name: str, section: Mapping[str, Any], agent: BaseAgent) -> dict[str, Any]:
    from runner.config.builtins import BUILTINS

    kind = _ALIASES.get(name, str(section.get("builtin", name)))
    if kind not in BUILTINS:
        if name in agent.tools:
            raise ValueError(f"tools_config[{name!r}] cannot reach a tool that was given: make it with its settings")
        known = ", ".join(BUILTINS)
        raise ValueError(f"tools_config[{name!r}] is no built-in tool ({known}), and names no `class`")
    return {f"tools.{name}.builtin": kind, **{f"tools.{name}.{key}": value for key, value in section.items()
                                              if key != "builtin"}}  # fmt: skip


def _of_class(name: str | None, section: Mapping[str, Any]) -> Tool:
    """A tool by the path of its class, made with the rest of its section, or with `config` as verl's tools are."""
    rest = {key: value for key, value in section.items() if key not in (*_CLASS, "config", "tool_schema")}
    path = next((str(section[key]) for key in _CLASS if key in section), "")
    if not path:
        raise ValueError("a tool of tools_config needs `class`, as `module:Class` or `module.Class`")
    kind = named(path)
    if "config" in section or "tool_schema" in section:
        rest |= {key: section[key] for key in ("config", "tool_schema") if key in section}
    try:
        made = kind(**rest)
    except TypeError as error:
        raise ValueError(f"the tool {path} cannot be made of its settings: {error}") from error
    return adapt(made, name, timeout=TOOL_SECONDS)


def named(path: str) -> Any:
    """What `module:Name` or `module.Name` names. Raises ValueError."""
    module, _, name = path.partition(":") if ":" in path else path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"{path!r} names nothing: {error}") from None
