"""pydantic-ai through MCP: an agent whose tools are those of `codemode serve`: `pydantic_ai_agent.py QUESTION`.

Needs `pip install "pydantic-ai-slim[mcp,anthropic]"` and ANTHROPIC_API_KEY.
"""

import asyncio
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset

SERVE = ["serve", "--config", "examples/history/mcp.json", "--allow", "git.*"]
MODEL = "anthropic:claude-sonnet-5-5"
START_SECONDS = 60  # the default of 5 can be too little for a server that a busy machine starts


async def ask(question, model=MODEL, command="codemode", arguments=SERVE):
    transport = StdioTransport(command, arguments)
    toolset = MCPToolset(transport, include_instructions=True, init_timeout=START_SECONDS)
    async with Agent(model, toolsets=[toolset]) as agent:
        return (await agent.run(question)).output


if __name__ == "__main__":
    print(asyncio.run(ask(" ".join(sys.argv[1:]) or "Who wrote the last ten commits of this repository?")))
