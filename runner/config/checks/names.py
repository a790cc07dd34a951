"""Names that point across the file: tools, roles, resources, and the words of `stop_when` and `inject`."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from runner.config.builtins import SandboxedTool
from runner.config.checks.checking import Checking
from runner.config.checks.sandboxes import check_sandbox
from runner.config.graders import RubricGrader, TrajectoryGrader
from runner.config.tools import CallTool
from runner.config.workflow import TOOL_AGENTS
from runner.diag.diagnostic import Path

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_INJECT = ("row", "rollout_id", "attempt")


def check_names(check: Checking) -> None:
    """Every name that is used is declared, and every declared name can be used."""
    _spelling(check)
    _workflow_tools(check)
    _stop_when(check)
    _inject(check)
    _sandboxes(check)
    _graders(check)
    _unused_roles(check)
    _dead_for_agent(check)
    _without_a_loop(check)


def declared_tools(check: Checking) -> list[str]:
    """All tools of the file, those that are broken included: a use of one is no second mistake."""
    tools = check.loaded.tree.get("tools")
    return list(tools) if isinstance(tools, dict) else []


def offered_tools(check: Checking) -> list[str]:
    """The tools the agent may call, in the order of the file."""
    globs = check.config.workflow.tools
    names = declared_tools(check)
    if globs is None or check.loaded.is_faulty(("workflow", "tools")):
        return names  # a slip in a glob is told once, not again wherever its tool is used
    return [name for name in names if any(fnmatchcase(name, glob) for glob in globs)]


def _declared(check: Checking, section: str) -> list[str]:
    table = check.loaded.tree.get(section)
    return list(table) if isinstance(table, dict) else []


def _spelling(check: Checking) -> None:
    for name in declared_tools(check):
        if not _TOOL_NAME.fullmatch(name):
            label = "letters, digits, `_` and `-`, at most 64"
            check.report("bad-value", ("tools", name), f"models cannot call a tool named `{name}`", label, key=True)
    for section in ("graders", "roles", "resources", "sandboxes"):
        for name in _declared(check, section):
            if not _NAME.fullmatch(name):
                label = "letters, digits, `_`, `.` and `-`"
                message = f"`{name}` cannot be a name in `[{section}]`"
                check.report("bad-value", (section, name), message, label, key=True)


def _workflow_tools(check: Checking) -> None:
    declared = declared_tools(check)
    seen: set[str] = set()
    for index, glob in enumerate(check.config.workflow.tools or ()):
        path = ("workflow", "tools", index)
        if glob in seen:
            check.warn("duplicate-name", path, f"`{glob}` is listed twice", "remove one")
        elif any(character in glob for character in "*?["):
            if not any(fnmatchcase(name, glob) for name in declared) and not of_server(check, glob):
                notes = [f"tools: {', '.join(declared)}"] if declared else ["the file declares no tool"]
                check.report("unknown-tool", path, f"`{glob}` matches no tool", notes=notes)
        elif glob not in declared and not of_server(check, glob):
            check.unknown("unknown-tool", path, "tool", glob, declared)
        seen.add(glob)


def _stop_when(check: Checking) -> None:
    offered = offered_tools(check)
    for index, word in enumerate(check.config.workflow.stop_when):
        path = ("workflow", "stop_when", index)
        if word.startswith("tool:"):
            check_offered(check, path, word[5:], offered)
        elif word != "no_tool_call":
            label = f"did you mean `tool:{word}`?" if word in offered else "one of: no_tool_call, tool:NAME"
            check.report("bad-choice", path, f"`{word}` is nothing to stop at", label)


def _inject(check: Checking) -> None:
    resources = _declared(check, "resources")
    for name, tool in check.config.tools.items():
        for argument, word in tool.inject.items() if isinstance(tool, CallTool) else ():
            path = ("tools", name, "inject", argument)
            if word.startswith("resource:"):
                if word[9:] not in resources:
                    check.unknown("unknown-resource", path, "resource", word[9:], resources)
            elif word not in _INJECT and not re.fullmatch(r"row\..+", word):
                label = f"did you mean `resource:{word}`?" if word in resources else ""
                notes = ["what can be injected: resource:NAME, row, row.COLUMN, rollout_id, attempt"]
                check.report("bad-choice", path, f"`{word}` cannot be injected", label, notes=notes)


def _sandboxes(check: Checking) -> None:
    """Every tool that works in a sandbox knows which."""
    known = _declared(check, "sandboxes")
    notes = [f"sandboxes: {', '.join(known)}"] if known else []
    for name, tool in check.config.tools.items():
        if isinstance(tool, SandboxedTool):
            check_sandbox(check, ("tools", name), tool.sandbox, "works", known, notes)


def of_server(check: Checking, name: str) -> bool:
    """Whether a name or glob is of an MCP server's tools: which there are is known when the server is connected."""
    servers = _declared(check, "mcp")
    server, slash, _ = name.partition("/")
    return any(fnmatchcase(each, server) for each in servers) if slash else "*" in name and bool(servers)


def check_offered(check: Checking, path: Path, name: str, offered: list[str]) -> None:
    """`name` is one of the tools that the agent may call."""
    if of_server(check, name):
        return
    if name in declared_tools(check) and name not in offered:
        related = [(check.place(("workflow", "tools")), "the tools it has")]
        message = f"the agent is not offered the tool `{name}`"
        check.report("unknown-tool", path, message, "add it to `workflow.tools`", related=related)
    elif name not in offered:
        check.unknown("unknown-tool", path, "tool", name, offered)


def _graders(check: Checking) -> None:
    roles, offered = _declared(check, "roles"), offered_tools(check)
    for name, grader in check.config.graders.items():
        path = ("graders", name)
        if isinstance(grader, RubricGrader):
            if grader.role not in roles:
                _unknown_role(check, path, grader.role, roles)
        elif isinstance(grader, TrajectoryGrader):
            for index, call in enumerate(grader.expect):
                check_offered(check, (*path, "expect", index, "tool"), call.tool, offered)


def _unknown_role(check: Checking, path: Path, role: str, roles: list[str]) -> None:
    if check.is_set((*path, "role")):
        check.unknown("unknown-role", (*path, "role"), "role", role, roles)
        return
    message, label = f"the rubric is judged by `{role}`, and there is no such role", f"add `[roles.{role}]`"
    notes = [f"roles: {', '.join(roles)}; `role` names another than `{role}`"] if roles else []
    check.report("unknown-role", path, message, label, key=True, notes=notes)


def _unused_roles(check: Checking) -> None:
    used = {grader.role for grader in check.config.graders.values() if isinstance(grader, RubricGrader)}
    unsure = any(path[:1] == ("graders",) for path in check.loaded.broken) or not used <= set(check.config.roles)
    if unsure or _has_own_code(check):
        return
    for name in check.config.roles:
        if name not in used:
            check.warn("no-effect", ("roles", name), f"no grader uses the role `{name}`", "remove it", key=True)


def _has_own_code(check: Checking) -> bool:
    """Whether some grader is Python of the user's, which may ask any role."""
    return any(grader.kind == "python" for grader in check.config.graders.values())


def _dead_for_agent(check: Checking) -> None:
    """Keys that the chosen agent never reads."""
    agent = check.config.agent
    if any(check.loaded.is_broken(path) for path in (("workflow", "agent"), ("tools",))) or not isinstance(agent, str):
        return
    if check.config.workflow.agent == "chat":
        for key in ("tools", "stop_when"):
            if check.is_set(("workflow", key)):
                message = f"the agent `chat` never reads `{key}`"
                check.warn("no-effect", ("workflow", key), message, 'use `agent = "tools"`', key=True)
        if check.config.tools:
            check.warn("no-effect", ("workflow", "agent"), "the agent `chat` calls no tools", "`tools` does")
    elif agent == "strands" and check.is_set(("workflow", "stop_when")):
        message = "the agent `strands` never reads `stop_when`: it ends with an answer"
        check.warn("no-effect", ("workflow", "stop_when"), message, 'use `agent = "tools"`', key=True)
    elif agent in TOOL_AGENTS and not declared_tools(check) and not check.config.mcp:
        message = f"the agent `{agent}` has no tool to call"
        check.warn("no-effect", ("workflow", "agent"), message, "`chat` needs none")


def _without_a_loop(check: Checking) -> None:
    """Keys of the loop that calls tools, which no other agent reads."""
    agent = check.config.agent
    if agent in TOOL_AGENTS or check.loaded.is_broken(("workflow", "agent")):
        return
    said = f"the agent `{agent}`" if isinstance(agent, str) else "an agent of your own"
    for key in ("parser", "reasoning"):
        if check.is_set(("workflow", key)):
            label = 'use `agent = "tools"`, or remove it'
            check.report("misplaced-key", ("workflow", key), f"{said} never reads `{key}`", label, key=True)
