"""The Python SDK's older client: `python_v1.py URL | COMMAND…`. Prints what it was told as one JSON object."""

import asyncio
import json
import os
import re
import sys

from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

CODE = "from tools import odd\nprint('x ' * 15_000)\nawait odd.echo(text='hi')"
EXTRACT = "await extract('Ada is 36', int)"


async def sample(_context, params):
    """The model of this client: it answers with the number that the text tells."""
    number = re.search(r"Ada is (\d+)", params.messages[0].content.text)[1]
    content = types.TextContent(type="text", text=number)
    return types.CreateMessageResult(role="assistant", content=content, model="stub")


async def main(target, *arguments):
    is_http = target.startswith("http")
    server = StdioServerParameters(command=target, args=list(arguments), env=dict(os.environ))
    reached = streamablehttp_client(target) if is_http else stdio_client(server)
    async with reached as streams, ClientSession(streams[0], streams[1], sampling_callback=sample) as session:
        hello = await session.initialize()
        tools = await session.list_tools()
        await session.call_tool("get_tool_details", {"tools": ["odd.echo"]})
        result = await session.call_tool("execute_code", {"code": CODE})
        uri = result.structuredContent["truncated"]["resource"].replace("offset=0", "offset=24000")
        read = await session.read_resource(uri)
        extracted = await session.call_tool("execute_code", {"code": EXTRACT})
    told = {
        "version": hello.protocolVersion,
        "tools": [tool.name for tool in tools.tools],
        "instructions": hello.instructions,
        "value": result.structuredContent["value"],
        "calls": len(result.structuredContent["calls"]),
        "rest": len(read.contents[0].text),
        "extracted": extracted.structuredContent["value"],
    }
    sys.stdout.write(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
