"""Plain Python functions as the tools of a server in this process.

Above: upstreams.py. Below: the SDK's `MCPServer`, which reads signatures and docstrings. Functions of the embedding
program run in its process, with all it may do; scripts reach them as they reach every other tool.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import InvalidSignature
from pydantic.errors import PydanticUserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def functions_server(name: str, functions: Iterable[Callable[..., Any]]) -> MCPServer:
    """Return a server whose tools are these functions, under their own names.

    Parameters and results need annotations that JSON can carry; the docstring is the description. What a function
    raises reaches a script as `ToolError` without the message, unless it is the SDK's `ToolError`.

    Raises:
        TypeError: A function's signature cannot be told to a script.
    """
    # The SDK's server would write logs of its own to stderr, unless somebody else takes them.
    root, nobody = logging.getLogger(), logging.NullHandler()
    root.addHandler(nobody)
    try:
        server = MCPServer(name)
    finally:
        root.removeHandler(nobody)
    for function in functions:
        try:
            server.add_tool(function)
        except (PydanticUserError, InvalidSignature) as error:
            reason = str(error).partition("\n")[0]
            raise TypeError(f"servers[{name!r}]: {function.__name__} cannot be a tool: {reason}") from None
    return server
