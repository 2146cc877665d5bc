"""A local server over stdio with one tool that returns its text."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("local")


@server.tool()
def echo(text: str) -> str:
    """Return the text."""
    return text


server.run()
