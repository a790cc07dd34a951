"""A server made with the official package. Over standard input and output, or with a port, over HTTP."""

from __future__ import annotations

import asyncio
import os
import sys

from mcp.server.mcpserver import MCPServer
from mcp_types import ImageContent, TextContent

server = MCPServer("official")
seen: list[str] = []


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def remember(word: str) -> list[str]:
    """Remember a word, and say all."""
    seen.append(word)
    return seen


@server.tool()
def fail() -> str:
    """Fail."""
    raise ValueError("it went wrong")


@server.tool()
async def sleep(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return "slept"


@server.tool()
def die() -> str:
    """End the process."""
    os._exit(3)


@server.tool()
def long(count: int) -> str:
    """Say much."""
    return "x" * count


@server.tool()
def environment(name: str) -> str:
    """A variable of the server's."""
    return os.environ.get(name, "unset")


@server.tool()
def picture() -> list[TextContent | ImageContent]:
    """A picture."""
    return [TextContent(text="see:"), ImageContent(data="AAAA", mime_type="image/png")]


if len(sys.argv) > 1:
    server.run("streamable-http", port=int(sys.argv[1]))
else:
    server.run("stdio")
