"""LangChain through MCP: the three tools of `codemode serve` as LangChain tools.

Needs `pip install langchain-mcp-adapters` and an agent of your choice, as in the last lines.
"""

import asyncio

from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

SERVE = ["serve", "--config", "examples/history/mcp.json", "--allow", "git.*"]
SCRIPT = "from tools import git\nlen(await git.git_log(repo_path='.', max_count=3))"


async def main(command="codemode", arguments=SERVE, tool="git.git_log", script=SCRIPT):
    client = MultiServerMCPClient({"codemode": {"transport": "stdio", "command": command, "args": arguments}})
    # One session for all calls: what was described to it stays so.
    async with client.session("codemode") as session:
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}
        print(sorted(tools))
        # agent = create_agent("anthropic:claude-sonnet-5-5", list(tools.values())); without a model, by hand:
        print(await tools["get_tool_details"].ainvoke({"tools": [tool]}))
        print(await tools["execute_code"].ainvoke({"code": script}))


if __name__ == "__main__":
    asyncio.run(main())
