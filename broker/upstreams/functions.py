"""Plain Python functions as the tools of a server in this process.

Above: upstreams.py. Below: the SDK's `MCPServer`, which reads signatures and docstrings. Functions of the embedding
program run in its process, with all it may do; scripts reach them as they reach every other tool.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Audio, Image
from mcp.server.mcpserver.exceptions import InvalidSignature
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata
from mcp.types import CallToolResult, ContentBlock, InputRequiredResult
from pydantic.errors import PydanticUserError
from pydantic_core import to_jsonable_python

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
            _add(server, function)
        except (PydanticUserError, InvalidSignature) as error:
            reason = str(error).partition("\n")[0].partition(". Set `")[0]
            reason = f"{reason}: {error.__cause__}" if isinstance(error.__cause__, NameError) else reason
            raise TypeError(f"servers[{name!r}]: {function.__name__} cannot be a tool: {reason}") from None
    return server


class _OfNoType(FuncMetadata):
    """What the SDK knows of a function whose result has no type that it can tell, such as `dict`, or none at all.

    The SDK sends such a result as text alone, a list as a text for each item. Here its value goes with that text, so
    that a script gets what the function returned.
    """

    def convert_result(self, result: Any) -> CallToolResult | InputRequiredResult:
        converted = super().convert_result(result)
        if isinstance(converted, CallToolResult) and converted is not result and not _has_content(result):
            converted.structured_content = to_jsonable_python(result, fallback=str)
        return converted


def _add(server: MCPServer, function: Callable[..., Any]) -> None:
    server.add_tool(function)
    tool = server._tool_manager.get_tool(function.__name__)  # noqa: SLF001  # the SDK has no other way to it
    if tool is not None and tool.fn_metadata.output_model is None:
        tool.fn_metadata = _OfNoType(arg_model=tool.fn_metadata.arg_model)


def _has_content(result: Any) -> bool:
    """Tell whether a result is for the model to see, or has parts that are: they are blocks, as of any other server."""
    if isinstance(result, list | tuple):
        return any(map(_has_content, result))
    return isinstance(result, ContentBlock | Image | Audio)
