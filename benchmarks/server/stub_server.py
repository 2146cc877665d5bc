"""A server with one trivial tool, in this process or over stdio."""

from __future__ import annotations

from mcp.server import MCPServer


def desk() -> MCPServer:
    """Return it."""
    server = MCPServer("desk", log_level="CRITICAL")

    @server.tool()
    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return server


if __name__ == "__main__":
    desk().run()
