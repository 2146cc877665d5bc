"""The names by which mode `tools` offers tools: ones that the interfaces of models take, each of one tool for good."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp import Client, MCPError, StdioServerParameters

from broker.server.offered_names import OfferedNames
from broker.tools.catalog import Catalog
from codegen import ToolAnnotations, ToolSpec

TAKEN = ("search_tools", "get_tool_details", "call_tool")
LEGAL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
RAW = Path(__file__).parents[1] / "servers" / "raw_upstream.py"
ODD = ["日本語ツール", "Ünï", "a" * 200, "q" * 200, "q" * 201, "a.b", "call_tool", "with space", "plain"]

NAMES = st.one_of(
    st.text(min_size=1, max_size=300),
    st.text(alphabet="aä_-.", min_size=1, max_size=6),
    st.sampled_from([*TAKEN, *ODD, "b__c", "s__plain", "plain-0123456789"]),
)
SERVERS = st.sampled_from(["s", "s__b", "s_", "日本", "l" * 80, "l" * 81])


def spec(server: str, name: str) -> ToolSpec:
    return ToolSpec(server, name, None, "", {"type": "object"}, None, ToolAnnotations())


def filled(servers, order):
    catalog = Catalog(servers)
    for server in order:
        catalog.replace(server, [spec(server, name) for name in servers[server]])
    return catalog


async def read(client, selection):
    result: Any = await client.read_resource(f"resource:///tool_descriptions{selection}")
    return json.loads(result.contents[0].text)


@given(servers=st.dictionaries(SERVERS, st.lists(NAMES, max_size=8, unique=True), min_size=1))
def test_every_name_is_one_for_models_and_of_one_tool(servers):
    names = OfferedNames(filled(servers, servers), TAKEN)
    offered = names.by_tool()
    assert all(LEGAL.fullmatch(name) for name in offered.values())
    assert len({*offered.values(), *TAKEN}) == len(offered) + len(TAKEN)
    for qualified, name in offered.items():
        assert names.qualified(name) == names.qualified(qualified) == qualified


@given(servers=st.dictionaries(SERVERS, st.lists(NAMES, max_size=8, unique=True), min_size=1))
@example(servers={"s": ["b__c"], "s__b": ["c"]})
def test_a_name_depends_neither_on_order_nor_on_what_else_is_connected(servers):
    whole = OfferedNames(filled(servers, servers), TAKEN).by_tool()
    turned = {server: servers[server][::-1] for server in servers}
    assert OfferedNames(filled(turned, reversed(servers)), TAKEN).by_tool() == whole
    for server in servers:
        alone = OfferedNames(filled(servers, [server]), TAKEN).by_tool()
        assert alone.items() <= whole.items()


def test_a_tool_of_a_server_that_is_down_is_not_taken_for_one_of_another_server():
    servers = {"my-server": ["q" * 70], "my_server": ["z"]}
    whole = OfferedNames(filled(servers, servers), TAKEN).by_tool()
    offered = whole[f"my-server.{'q' * 70}"]
    stands_in = offered.partition("__")[2]
    catalog = filled(servers | {"my_server": ["z", stands_in]}, ["my_server"])
    names = OfferedNames(catalog, TAKEN)
    assert catalog.find(names.qualified(offered)) is None
    assert names.entry(offered) is None


def test_a_name_says_what_can_be_said_of_the_tool_in_plain_letters():
    catalog = filled({"bücher": ["Straße öffnen", "q" * 200], "日本": ["読む"]}, ["bücher", "日本"])
    assert list(OfferedNames(catalog, TAKEN).by_tool().values()) == [
        "bucher__Stra_e_offnen",
        f"bucher__{'q' * 45}-d787a5882e",
        "tool-8b03dd5580",
    ]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"], indirect=True)
@pytest.mark.parametrize("several", [False, True])
@pytest.mark.usefixtures("deadline")
async def test_a_client_reads_and_calls_every_tool_by_its_listed_name(tmp_path, several):
    log, answers, config = (tmp_path / name for name in ("log", "answers.json", "mcp.json"))
    schema = {"type": "object"}
    tools = {"tools": [{"name": name, "description": f"Tool {name}", "inputSchema": schema} for name in ODD]}
    line = json.dumps({"jsonrpc": "2.0", "id": "%ID%", "result": tools}).replace('"%ID%"', "%ID%")
    answers.write_text(json.dumps({"tools/list": f"{line}\n"}), encoding="utf-8")
    server = {"command": sys.executable, "args": [str(RAW), str(answers)], "env": {"HOSTILE_LOG": str(log)}}
    servers = {"odd": server} | ({"two": server} if several else {})
    config.write_text(json.dumps({"mcpServers": servers, "serve": {"mode": "tools"}}))
    codemode = str(Path(sys.executable).with_name("codemode"))
    stdio = StdioServerParameters(command=codemode, args=["serve", "-c", str(config), "--allow", "*.*"])
    async with Client(stdio) as client:
        names = [tool.name for tool in (await client.list_tools()).tools][len(TAKEN) :]
        assert len(set(names)) == len(names) == len(ODD) * len(servers)
        assert all(LEGAL.fullmatch(name) for name in names)
        assert set((await read(client, ""))["error"]["available_tools"]) == set(names)
        described = []
        for name in names:
            refused = await client.call_tool(name, {})
            assert refused.structured_content["error"]["resource_uri"].endswith(f"={quote(name)}")
            entry = (await read(client, f"?tools={name}"))[name]
            assert entry["name"] == name
            described.append(entry["description"])
            assert not (await client.call_tool(name, {})).is_error
        with pytest.raises(MCPError) as unknown:
            await client.call_tool(f"{names[0]}x", {})
        assert names[0] in str(unknown.value)
    assert sorted(described) == sorted(f"Tool {name}" for name in ODD * len(servers))
    assert log.read_text() == "call\n" * len(names)
