"""The Python SDK's client behind pipes: `python_client.py MODE [URL | COMMAND…]`.

A request a line, an answer a line.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import anyio
import anyio.to_thread
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


async def main() -> None:
    mode, target, *arguments = sys.argv[1:]
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        reached = (
            streamable_http_client(target, http_client=http)
            if target.startswith("http")
            else StdioServerParameters(command=target, args=arguments, env=dict(os.environ))
        )
        async with Client(reached, mode=mode) as client:
            await answer(client)


async def answer(client: Client) -> None:
    say({"instructions": client.instructions, "version": client.protocol_version})
    while line := await anyio.to_thread.run_sync(sys.stdin.readline):
        method, params = json.loads(line)
        try:
            result: Any
            match method:
                case "tools/list":
                    result = await client.list_tools(cache_mode="refresh")
                case "resources/list":
                    result = await client.list_resources()
                case "resources/read":
                    result = await client.read_resource(params["uri"], cache_mode="refresh")
                case _:
                    result = await client.call_tool(params["name"], params["arguments"])
        except MCPError as error:
            say({"error": {"code": error.error.code, "message": error.error.message}})
        else:
            say({"result": result.model_dump(mode="json", by_alias=True, exclude_none=True)})


def say(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


anyio.run(main)
