"""`[mcp]` to servers: connected when the plan opens, and what they offer to tools of the plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from runner.build.approval import build_rules
from runner.build.environment import values_of
from runner.build.site import Site
from runner.config.config import RolloutConfig
from runner.config.mcp import McpSection
from runner.records.completion import ToolSpec
from runner.records.failure import ConfigFailure
from runner.records.quick import quick
from runner.tools.approval import ApprovedTool, Rule
from runner.tools.mcp.endpoint import CommandEndpoint, Endpoint, UrlEndpoint
from runner.tools.mcp.names import wire_name
from runner.tools.schema import schema_faults
from runner.tools.tool import Tool

if TYPE_CHECKING:
    from mcp_types import Tool as Offered

    from runner.tools.mcp.connection import Connection
    from runner.tools.mcp.tool import McpTool

_TIMEOUT = 60.0
"""Seconds of a call where neither the server's table nor `limits.tool_time` says any."""


@quick
class McpPart:
    """A server of the plan. `wanted` are the globs of its own table, `chosen` those of `[workflow] tools`."""

    name: str
    connect: Callable[[], Connection]
    own: bool
    wanted: tuple[str, ...] | None
    chosen: tuple[str, ...] | None
    max_output: int
    rules: tuple[Rule, ...] = ()

    def takes(self, tool: str) -> bool:
        """Whether the file wants this tool of the server."""
        mine = self.wanted is None or any(fnmatchcase(tool, glob) for glob in self.wanted)
        return mine and (self.chosen is None or any(fnmatchcase(f"{self.name}/{tool}", glob) for glob in self.chosen))

    def missed(self, offered: Sequence[str]) -> str | None:
        """The first glob that names a tool of this server and fits none."""
        globs = [f"{self.name}/{glob}" for glob in self.wanted or ()]
        globs += [glob for glob in self.chosen or () if glob.startswith(f"{self.name}/")]
        names = [f"{self.name}/{tool}" for tool in offered]
        return next((glob for glob in globs if not any(fnmatchcase(name, glob) for name in names)), None)


def build_servers(site: Site) -> list[McpPart]:
    """Every server of the file. Nothing is connected yet."""
    return [_build(site, name, section) for name, section in site.config.mcp.items()]


async def open_servers(parts: Sequence[McpPart], stack: AsyncExitStack) -> dict[str, Tool]:
    """Connect all, and return their tools by the name that the model sees.

    Raises `ConfigFailure`: a server cannot be had (kind "mcp_unavailable"), or has not what the file names.
    """
    tools: dict[str, Tool] = {}
    for part in parts:
        connection = part.connect()
        stack.push_async_callback(connection.aclose)
        for tool in await _offered(part, connection):
            if tool.spec.name in tools:
                raise ConfigFailure(f"two tools are called `{tool.spec.name}`", kind="duplicate_name")
            tools[tool.spec.name] = ApprovedTool(tool, part.rules) if part.rules else tool
    return tools


def _build(site: Site, name: str, section: McpSection) -> McpPart:
    config = site.config
    endpoint = _endpoint(config, section)
    timeout = section.timeout or config.limits.tool_time or _TIMEOUT

    def connect() -> Connection:
        from runner.tools.mcp.connection import Connection  # not before somebody connects

        return Connection(name, endpoint, start_time=section.start_time, timeout=timeout)

    chosen = config.workflow.tools
    rules = build_rules(site, section.approve, ("mcp", name))
    return McpPart(name, connect, section.scope == "rollout", section.tools, chosen, section.max_output, tuple(rules))


def _endpoint(config: RolloutConfig, section: McpSection) -> Endpoint:
    if section.command is not None:
        return CommandEndpoint(section.command, values_of(section.env), str(config.folder))
    return UrlEndpoint(section.url or "", values_of(section.headers))


async def _offered(part: McpPart, connection: Connection) -> list[McpTool]:
    from runner.tools.mcp.connection import ServerLost

    try:
        offered = await connection.tools()
    except ServerLost as error:
        raise ConfigFailure(str(error), kind="mcp_unavailable") from error
    missed = part.missed([tool.name for tool in offered])
    if missed is not None:
        names = ", ".join(f"`{part.name}/{tool.name}`" for tool in offered[:20]) or "none"
        raise ConfigFailure(f"`{missed}` fits no tool of the MCP server; its tools: {names}", kind="unknown_tool")
    return [_tool(part, connection, tool) for tool in offered if part.takes(tool.name)]


def _tool(part: McpPart, connection: Connection, tool: Offered) -> McpTool:
    name = f"{part.name}/{tool.name}"
    faults = schema_faults(tool.input_schema)
    if faults:
        text = f"the MCP server offers `{name}` with a schema that is none: {faults[0].message}"
        raise ConfigFailure(f"{text}. Leave it out with `[mcp.{part.name}] tools`", kind="bad_schema")
    from runner.tools.mcp.tool import McpTool

    spec = ToolSpec(wire_name(name), tool.description or "", tool.input_schema)
    connect = part.connect if part.own else None
    return McpTool(spec, tool.name, connection, max_output=part.max_output, connect=connect)
