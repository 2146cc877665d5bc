"""The Python SDK's newer client: `python_v2.py URL | COMMAND…`. Prints what it was told as one JSON object."""

import asyncio
import json
import os
import re
import sys

from mcp import Client, StdioServerParameters, types

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
    async with Client(target if is_http else server, mode="auto", sampling_callback=sample) as client:
        tools = await client.list_tools()
        described = await client.call_tool("get_tool_details", {"tools": ["odd.echo"]})
        handle = re.search(r'session: "(s_[0-9a-f]+)"', described.content[0].text)
        session = {} if handle is None else {"session": handle[1]}
        result = await client.call_tool("execute_code", {"code": CODE, **session})
        uri = result.structured_content["truncated"]["resource"].replace("offset=0", "offset=24000")
        read = await client.read_resource(uri)
        extracted = await client.call_tool("execute_code", {"code": EXTRACT, **session})
        told = {
            "version": client.protocol_version,
            "tools": [tool.name for tool in tools.tools],
            "instructions": client.instructions,
            "value": result.structured_content["value"],
            "calls": len(result.structured_content["calls"]),
            "rest": len(read.contents[0].text),
            "extracted": extracted.structured_content["value"],
        }
    sys.stdout.write(json.dumps(told))


asyncio.run(main(*sys.argv[1:]))
