"""Tools of MCP servers. The only room that imports `mcp`, and only when a server is connected."""
