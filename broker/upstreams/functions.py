"""Plain Python functions as the tools of a server in this process.

Above: upstreams.py, and connecting.py for the way there. Below: the SDK's `MCPServer`, which reads signatures and
docstrings. Functions of the embedding program run in its process, with all it may do; scripts reach them as they reach
every other tool.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import InvalidSignature, ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent
from pydantic.errors import PydanticUserError

from broker.logging import logger
from broker.upstreams.in_process import InProcessDispatcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from broker.upstreams.in_process import Request


class FunctionsServer(MCPServer):
    """A server whose tools are functions.

    Attributes:
        plain: Those that take nothing but their arguments: no `Context`, and nothing that asks the client.
    """

    def __init__(self, name: str, functions: Iterable[Callable[..., Any]]) -> None:
        """Make a tool of each function.

        Raises:
            TypeError: A function's signature cannot be told to a script.
        """
        # The SDK's server would write logs of its own to stderr, unless somebody else takes them.
        root, nobody = logging.getLogger(), logging.NullHandler()
        root.addHandler(nobody)
        try:
            super().__init__(name)
        finally:
            root.removeHandler(nobody)
        self.plain: set[str] = set()
        for function in functions:
            try:
                self.add_tool(function)
                tool = Tool.from_function(function)
            except (PydanticUserError, InvalidSignature) as error:
                reason = str(error).partition("\n")[0]
                raise TypeError(f"servers[{name!r}]: {function.__name__} cannot be a tool: {reason}") from None
            if tool.context_kwarg is None and not tool.resolved_params:
                self.plain.add(tool.name)


def functions_server(name: str, functions: Iterable[Callable[..., Any]]) -> FunctionsServer:
    """Return a server whose tools are these functions, under their own names.

    Parameters and results need annotations that JSON can carry; the docstring is the description. What a function
    raises reaches a script as `ToolError` without the message, unless it is the SDK's `ToolError`.
    """
    return FunctionsServer(name, functions)


class FunctionsDispatcher(InProcessDispatcher):
    """The client's end of a connection to functions: plain ones are called without a request around them.

    What is left out is what no function sees: the envelope, the server's middleware, the checks of what both ends
    have made themselves. Errors are the same.
    """

    def __init__(self, server: FunctionsServer, lifespan_state: Any) -> None:
        """Take the server, with what its lifespan gave."""
        super().__init__(server._lowlevel_server, lifespan_state)  # noqa: SLF001  # as the SDK's own client reaches it
        self._functions = server

    async def handled(self, request: Request, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Call a function, or have the server handle what is more than that."""
        if method != "tools/call" or params is None or params.get("name") not in self._functions.plain:
            return await super().handled(request, method, params)
        try:
            result = await self._functions.call_tool(params["name"], params.get("arguments") or {})
        except ToolError as error:
            if isinstance(error, UnexpectedToolError):
                logger().exception("a function failed", function=params["name"])
            result = CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
