"""Plain Python functions as the tools of a server in this process.

Above: broker.py. Below: the SDK's `MCPServer`, which reads signatures and docstrings. The functions are the embedding
host's own and run in its process, with all it may do; scripts reach them as they reach every other tool.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mcp.server import MCPServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def functions_server(name: str, functions: Iterable[Callable[..., Any]]) -> MCPServer:
    """Return a server whose tools are these functions, under their own names.

    Parameters and results need annotations that JSON can carry; the docstring is the description. What a function
    raises reaches a script as `ToolError` without the message, unless it is the SDK's `ToolError`.
    """
    # The SDK's server would write logs of its own to stderr, unless somebody else takes them.
    root, nobody = logging.getLogger(), logging.NullHandler()
    root.addHandler(nobody)
    try:
        server = MCPServer(name)
    finally:
        root.removeHandler(nobody)
    for function in functions:
        server.add_tool(function)
    return server
