"""An MCP server with tools that are logged to NOTES_LOG when they are executed."""

from __future__ import annotations

import os
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("notes")


def executed(what: str) -> str:
    with Path(os.environ["NOTES_LOG"]).open("a", encoding="utf-8") as log:
        log.write(what + "\n")
    return what


@server.tool()
def add(text: str, urgent: bool = False) -> str:  # noqa: FBT001, FBT002  # a tool's parameter
    """Keeps a note. An urgent one is kept first. Nothing is ever lost."""
    return executed(f"add {text} {urgent}")


@server.tool()
def count(word: str) -> str:
    """Counts notes that have a word. Words are compared in lower case."""
    return executed(f"count {word}")


@server.tool()
def find(word: str) -> str:
    """Finds notes. The newest comes first."""
    return executed(f"find {word}")


@server.tool()
def erase(text: str) -> str:
    """Erases a note. It cannot be had back."""
    return executed(f"erase {text}")


server.run()
