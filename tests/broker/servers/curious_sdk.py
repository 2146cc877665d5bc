"""What `curious.py` does by hand, done by the SDK's server: asks for a form in both eras, over stdio."""

from __future__ import annotations

from typing import Any

import anyio
import mcp.types as t
from curious import REQUESTS, TOOLS, done  # type: ignore[import-not-found]  # the file beside this one
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.message import ServerMessageMetadata


async def list_tools(_ctx: Any, _params: Any) -> t.ListToolsResult:
    return t.ListToolsResult.model_validate(TOOLS)


async def call_tool(
    ctx: ServerRequestContext[Any, Any], params: t.CallToolRequestParams
) -> t.CallToolResult | t.InputRequiredResult:
    request = t.ElicitRequest.model_validate(REQUESTS[(params.arguments or {})["what"]])
    told: Any
    if ctx.session.can_send_request:
        metadata = ServerMessageMetadata(related_request_id=ctx.request_id)
        told = await ctx.session.send_request(request, t.ElicitResult, metadata=metadata)
    elif params.input_responses is None:
        return t.InputRequiredResult(input_requests={"a": request}, request_state="asked")
    else:
        told = params.input_responses["a"]
    return t.CallToolResult.model_validate(done(told.model_dump(mode="json", exclude_none=True)))


async def main() -> None:
    server: Server[Any] = Server("curious", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
