"""An MCP server with a tool for each thing that a server can do wrong during a call."""

from __future__ import annotations

import os

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("odd")


@server.tool()
def echo(text: str) -> str:
    """Returns the text.\x1b]0;title\x07\x1b[31m Red.\u202e"""
    return text


@server.tool()
def fail(text: str) -> str:
    """Fails with the text."""
    raise ToolError(text)


@server.tool()
def die() -> str:
    """Ends the server's process."""
    os._exit(3)


server.run()
