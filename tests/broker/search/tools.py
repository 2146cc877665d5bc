from __future__ import annotations

from broker.search import KeywordIndex
from codegen import ToolAnnotations, ToolSpec


def tool(
    server: str, name: str, description: str = "", *, title: str | None = None, parameters=(), required=(), **hints
) -> ToolSpec:
    properties = {parameter: {"type": "string"} for parameter in parameters}
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(server, name, title, description, schema, None, ToolAnnotations(**hints))


def first_of(tools: list[ToolSpec], query: str) -> str:
    """Returns the name of the tool that an index of only these finds first."""
    index = KeywordIndex()
    for server in {one.server for one in tools}:
        index.replace(server, [one for one in tools if one.server == server])
    return index.rank(query)[0].spec.name


TOOLS = {
    "git": [
        tool("git", "git_log", "Shows the commit history.", parameters=["repo_path", "max_count"], read_only=True),
        tool("git", "git_commit", "Records changes to the repository.", parameters=["message"], read_only=False),
        tool("git", "gitBranchDelete", "Deletes a branch.", destructive=True, read_only=False),
    ],
    "storage": [
        tool("storage", "sql_db_delete", "Deletes one.", title="Delete SQL Database", destructive=True),
        tool("storage", "sql_server_delete", "Deletes a server.", destructive=True),
        tool("storage", "eventgrid_topic_list", "Lists topics.", read_only=True),
        tool("storage", "eventgrid_subscription_list", "Lists subscriptions.", read_only=True),
    ],
    "weather": [
        tool("weather", "get_forecast", "Tells the weather of the next days.", parameters=["latitude", "longitude"]),
        tool("weather", "météo_paris", "Température à Paris."),
        tool("weather", "tianqi", "查询城市天气预报"),
    ],
}
