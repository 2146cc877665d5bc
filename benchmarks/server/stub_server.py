"""A stdio server with one trivial tool."""

from __future__ import annotations

from mcp.server import MCPServer

server = MCPServer("desk", log_level="CRITICAL")


@server.tool()
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


if __name__ == "__main__":
    server.run()
