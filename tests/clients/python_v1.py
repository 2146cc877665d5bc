"""The Python SDK's older client: `python_v1.py URL | COMMAND…`. Prints what it was told as one JSON object."""

import asyncio
import json
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

CODE = "from tools import odd\nprint('x ' * 15_000)\nawait odd.echo(text='hi')"


async def main(target, *arguments):
    is_http = target.startswith("http")
    server = StdioServerParameters(command=target, args=list(arguments), env=dict(os.environ))
    reached = streamablehttp_client(target) if is_http else stdio_client(server)
    async with reached as streams, ClientSession(streams[0], streams[1]) as session:
        hello = await session.initialize()
        tools = await session.list_tools()
        await session.call_tool("get_tool_details", {"tools": ["odd.echo"]})
        result = await session.call_tool("execute_code", {"code": CODE})
        uri = result.structuredContent["truncated"]["resource"].replace("offset=0", "offset=24000")
        read = await session.read_resource(uri)
    told = {
        "tools": [tool.name for tool in tools.tools],
        "instructions": hello.instructions,
        "value": result.structuredContent["value"],
        "calls": len(result.structuredContent["calls"]),
        "rest": len(read.contents[0].text),
    }
    sys.stdout.write(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
