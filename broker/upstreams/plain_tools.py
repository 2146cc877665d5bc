"""An `MCPServer` in this process whose plain tools are called without a request around them.

Above: connecting.py. Below: in_process.py, for all else. What is left out takes most of such a call: the context, the
checks of what both ends have made themselves, and the SDK's own middleware where nothing would come of it.
"""

from __future__ import annotations

import logging
from types import MethodType
from typing import TYPE_CHECKING, Any

from mcp import MCPError
from mcp.server._otel import OpenTelemetryMiddleware
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool, ToolManager
from mcp.server.request_state import RequestStateBoundary
from mcp.types import CallToolResult, TextContent

from broker.tracing import is_in_span
from broker.upstreams.in_process import InProcessDispatcher

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.shared.dispatcher import CallOptions

_OF_THE_SDK = [OpenTelemetryMiddleware, RequestStateBoundary]
"""The middleware of every `MCPServer`: spans, and the state of requests that are repeated with answers."""

_NO_REQUEST: Context[Any, Any] = Context()
"""What the SDK hands down beside the arguments. No plain tool is given it, and making one takes half a call's time."""

_LOGGER = logging.getLogger(MCPServer.__module__)
"""The SDK's: where the log tells of a tool that failed does not depend on the way to it."""


class PlainToolsDispatcher(InProcessDispatcher):
    """The client's end of a connection to an `MCPServer`. Results and errors are those of its other way, word for word.

    A tool is plain that takes nothing but its arguments: no `Context`, and nothing that asks the client.
    """

    def __init__(self, server: MCPServer, lifespan_state: Any) -> None:
        """Take the server, with what its lifespan gave."""
        super().__init__(server._lowlevel_server, lifespan_state)  # noqa: SLF001  # as the SDK's own client reaches it
        self._mcp = server
        self._own = (
            MethodType(MCPServer._handle_call_tool, server),  # noqa: SLF001  # there is no public way
            MethodType(MCPServer.call_tool, server),
        )

    async def handled(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions) -> dict[str, Any]:
        """Call a plain tool, or have the server handle what is more than that."""
        if method != "tools/call" or params is None or not self._is_plain(params):
            return await super().handled(method, params, opts)
        name = params["name"]
        try:
            result = await self._mcp.call_tool(name, params.get("arguments") or {}, _NO_REQUEST)
        except MCPError:
            raise
        except Exception as error:
            if isinstance(error, ToolError) and not isinstance(error, UnexpectedToolError):
                _LOGGER.info("Tool %r failed", name)
            else:
                _LOGGER.exception("Tool %r raised an unexpected exception", name)
            result = CallToolResult(content=[TextContent(type="text", text=str(error))], is_error=True)
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    def _is_plain(self, params: Mapping[str, Any]) -> bool:
        """Tell whether nobody misses the request of a call: no tool, extension, subclass, middleware or span."""
        manager = self._mcp._tool_manager  # noqa: SLF001  # the public list is made anew
        tool = manager.get_tool(params["name"])
        entry = self._server.get_request_handler("tools/call")
        return (
            type(manager) is ToolManager
            and type(tool) is Tool
            and tool.context_kwarg is None
            and not tool.resolved_params
            and entry is not None
            and (entry.handler, self._mcp.call_tool) == self._own  # an extension or a subclass takes their place
            and [type(one) for one in self._mcp.middleware] == _OF_THE_SDK
            and not is_in_span()
        )
