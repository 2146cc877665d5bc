"""Mode `tools` in memory: names, lazy servers, `auto`, rates; the rest is in the system tests."""

from __future__ import annotations

import base64
import json
import math
import sys
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp import types as t
from mcp.server import MCPServer

from broker import Broker, Config, Grant, ServerConfig
from broker.disclosure.settings import DisclosureSettings
from broker.server import BrokerServer, ServeSettings
from broker.server.offered_names import OfferedNames
from broker.texts.tool_texts import ALL_DESCRIBED, READ_NEXT
from broker.tiers import Tier, token_counter
from broker.tiers.pages import BUDGETS
from broker.tools.catalog import Catalog
from codegen import ToolAnnotations, ToolSpec

pytestmark = pytest.mark.anyio

URI = "resource:///tool_descriptions"
RAW = Path(__file__).parents[1] / "servers" / "raw_upstream.py"


@pytest.fixture
def brokers():
    """The brokers behind `offered`, in order."""
    return []


@pytest.fixture
def offered(desk_server, brokers, mode):
    """A client of a server in mode `tools`."""

    @asynccontextmanager
    async def offer(*, served_mode="tools", client_options=MappingProxyType({}), **sections):
        config = Config(**sections)
        with anyio.fail_after(60):
            async with Broker(config, servers={"desk": desk_server}, opens_sandbox=False) as broker:
                server = BrokerServer(
                    broker,
                    ServeSettings(mode=served_mode),
                    make_session=lambda _: broker.session(grants=[Grant("*.*")]),
                )
                async with Client(server.mcp, mode=mode, **client_options) as client:
                    brokers.append(broker)
                    yield client

    return offer


async def read(client, *names):
    result = await client.read_resource(f"{URI}?tools={','.join(names)}", cache_mode="refresh")
    return json.loads(result.contents[0].text)


async def names(client):
    return [tool.name for tool in (await client.list_tools(cache_mode="refresh")).tools]


async def searched(client, arguments):
    return (await client.call_tool("search_tools", arguments)).content[0].text


HEAD = ["search_tools", "get_tool_details", "call_tool"]


async def test_the_tools_of_one_server_keep_their_names(offered):
    async with offered() as client:
        assert await names(client) == [*HEAD, "add", "fail", "wait"]
        assert (await client.call_tool("search_tools", {"query": "numbers"})).content[0].text.startswith("desk.add")


async def test_tools_of_several_servers_are_told_apart_by_their_servers(offered, faulty):
    async with offered(servers={"other": faulty("plain")}) as client:
        assert await names(client) == [*HEAD, "desk__add", "desk__fail", "desk__wait", "other__echo"]
        document = await read(client, "desk__add", "other.echo", "ech")
        assert [entry.get("name") for entry in document.values()] == ["desk__add", "other.echo", None]
        assert document["ech"]["available_tools"][0] == "other__echo"
        for name in ("desk__add", "desk.add"):
            assert (await client.call_tool(name, {"a": 1})).structured_content == {"result": 3}


def says(name, *names):
    """A server whose tools say which one was called."""
    server = MCPServer(name)

    def tool(said):
        def say() -> str:
            return f"{name}: {said}"

        return say

    for one in names:
        server.add_tool(tool(one), name=one, description="Says who it is.")
    return server


@pytest.mark.parametrize(
    ("servers", "said"),
    [
        (
            [says("a", "b__c", "plain"), says("a__b", "c")],
            {"a__b__c-15098de130": "a: b__c", "a__b__c": "a__b: c", "a__plain": "a: plain"},
        ),
        (
            [says("one", "search_tools", "one__search_tools", "x\ny", "kept.name")],
            {
                "one__search_tools-c355a0697a": "one: search_tools",
                "one__search_tools": "one: one__search_tools",
                "one__x_y": "one: x\ny",
                "one__kept_name": "one: kept.name",
            },
        ),
    ],
)
async def test_no_tool_stands_in_for_another_and_all_have_names_of_the_protocol(servers, said):
    with anyio.fail_after(60):
        async with Broker(servers={server.name: server for server in servers}, opens_sandbox=False) as broker:
            make = BrokerServer(
                broker, ServeSettings(mode="tools"), make_session=lambda _: broker.session(grants=[Grant("*")])
            )
            async with Client(make.mcp) as client:
                assert sorted(await names(client)) == sorted([*HEAD, *said])
                assert all(entry is not None for entry in (await read(client, *said)).values())
                answers = {name: (await client.call_tool(name, {})).content[0].model_dump()["text"] for name in said}
    assert answers == said


async def test_what_json_cannot_carry_of_a_definition_is_left_out_of_it(desk_server):
    odd = {"type": "object", "properties": {"n": {"maximum": math.inf, "default": math.nan, "title": "half \ud800"}}}
    with anyio.fail_after(60):
        async with Broker(servers={"desk": desk_server}, opens_sandbox=False) as broker:
            entry = broker.catalog.lookup("desk.add")
            broker.catalog.replace("desk", [replace(entry.spec, input_schema=odd)])
            async with Client(BrokerServer(broker, ServeSettings(mode="tools")).mcp) as client:
                document = await read(client, "add")
    assert document["add"]["inputSchema"]["properties"]["n"] == {"maximum": None, "default": None, "title": "half ?"}


async def test_the_listing_does_not_change_while_a_lazy_server_comes_and_goes(offered, faulty):
    async with offered(servers={"idle": faulty("plain", lazy=True)}) as client:
        before = await names(client)
        assert "idle__echo" not in before
        assert (await client.call_tool("search_tools", {"query": "echo", "server": "idle"})).content[0].text
        assert await names(client) == before
        await client.call_tool("get_tool_details", {"tools": ["idle.echo"]})
        result = await client.call_tool("call_tool", {"name": "idle.echo", "arguments": {"text": "hi"}})
        assert result.content[0].text == "hi"
        assert await names(client) == before


async def test_a_call_wakes_the_lazy_server_of_a_name_that_is_not_listed_yet(offered, faulty):
    async with offered(servers={"idle": faulty("plain", lazy=True)}) as client:
        refused = await client.call_tool("idle__echo", {"text": "hi"})
        error = json.loads(refused.content[0].text)["error"]
        assert (error["code"], error["resource_uri"]) == ("TOOL_DESCRIPTION_REQUIRED", f"{URI}?tools=idle__echo")
        assert "inputSchema" in (await read(client, "idle__echo"))["idle__echo"]
        assert (await client.call_tool("idle__echo", {"text": "hi"})).content[0].text == "hi"


LONG = "q" * 70


@pytest.fixture
def asleep(tmp_path):
    """A lazy server whose tools have names that clients do not take."""
    answers = tmp_path / "answers.json"
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in (LONG, "a,b")]
    listing = json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"tools": tools}}).replace('"id": 0', '"id": %ID%')
    answers.write_text(json.dumps({"tools/list": f"{listing}\n"}), encoding="utf-8")
    log = str(tmp_path / "log")
    return ServerConfig(command=sys.executable, args=(str(RAW), str(answers)), env={"HOSTILE_LOG": log}, lazy=True)


def offered_name(server, tool):
    catalog = Catalog(["desk", server])
    catalog.replace(server, [ToolSpec(server, tool, None, "", {}, None, ToolAnnotations())])
    return OfferedNames(catalog, HEAD).by_tool()[f"{server}.{tool}"]


@pytest.mark.parametrize("server", ["idle", "Idle-Server-", "a-server-of-a-long-name"])
async def test_a_name_with_a_digest_wakes_the_lazy_server_whose_tool_it_may_be(offered, asleep, server):
    name = offered_name(server, LONG)
    async with offered(servers={server: asleep}) as client:
        assert (await read(client, name))[name]["name"] == name
        assert (await client.call_tool(name, {})).content[0].text == "hi"


async def test_a_call_by_a_name_with_a_digest_wakes_the_lazy_server_too(offered, asleep):
    name = offered_name("a-server-of-a-long-name", LONG)
    async with offered(servers={"a-server-of-a-long-name": asleep}) as client:
        refused = json.loads((await client.call_tool("call_tool", {"name": name})).content[0].text)
        assert refused["error"]["code"] == "TOOL_DESCRIPTION_REQUIRED"


@pytest.mark.parametrize("served_mode", ["tools", "code"])
async def test_a_name_with_a_comma_of_a_server_that_is_asleep_is_not_taken_apart(offered, asleep, served_mode):
    async with offered(served_mode=served_mode, servers={"idle": asleep}) as client:
        document = await read(client, "idle.a%2Cb")
        assert list(document) == ["idle.a,b"]
        assert "inputSchema" in document["idle.a,b"]


async def test_a_name_that_may_be_of_no_lazy_server_wakes_none(offered, brokers, asleep):
    async with offered(servers={"idle": asleep}) as client:
        for name in ("add", "desk.a%2Cb", f"desk__{'q' * 40}-0123456789", "nothing"):
            await read(client, name)
        assert {status.name: status.state for status in brokers[0].server_statuses()}["idle"] == "asleep"
        assert (await read(client, "idle__none"))["idle__none"]["error"]
        assert {status.name: status.state for status in brokers[0].server_statuses()}["idle"] == "ready"


@pytest.mark.parametrize("name", ["gone.echo", "gone__echo"])
async def test_a_call_to_a_server_that_is_down_says_so(offered, faulty, name):
    async with offered(servers={"gone": faulty("exits")}) as client:
        for result in (await client.call_tool(name, {}), await client.call_tool("call_tool", {"name": name})):
            assert result.is_error
            assert result.content[0].text.startswith("gone is not available: it exited with code 3;")
            assert result.content[0].text.endswith(
                'Nothing was sent. Do without it, or call again once search_tools({"query": "", "server": "gone"}) '
                "says this no more."
            )
        assert (await read(client, name))[name]["error"].startswith("gone is not available")


async def test_a_call_without_a_description_says_how_to_get_one_without_reading_resources(offered, brokers):
    async def refused(name):
        result = await client.call_tool(name, {"a": 1})
        assert result.is_error
        return json.loads(result.content[0].text)["error"]["message"]

    how = f'Read {URI}?tools=add or call get_tool_details with {{"tools": ["add"]}}, then call again.'
    async with offered() as client:
        assert await refused("add") == f"add was not executed: its description has not been read yet. {how}"
        await client.call_tool("get_tool_details", {"tools": ["add"]})
        assert (await client.call_tool("add", {"a": 1})).structured_content == {"result": 3}
        catalog = brokers[0].catalog
        [spec, *others] = [entry.spec for entry in catalog.of_server("desk")]
        catalog.replace("desk", [replace(spec, description="Adds otherwise."), *others])
        why = "it has changed since its description was read (changed: its description)"
        assert await refused("add") == f"add was not executed: {why}. {how}"


async def test_an_unknown_tool_is_a_protocol_error_with_the_nearest(offered):
    async with offered() as client:
        with pytest.raises(MCPError, match='There is no tool "ad"') as caught:
            await client.call_tool("ad", {})
        assert caught.value.error.message.endswith('Nothing was executed. Did you mean "add"?')
        with pytest.raises(MCPError) as caught:
            await client.call_tool("zzz", {})
        assert caught.value.error.message == (
            'There is no tool "zzz". Nothing was executed. Try search_tools({"query": "zzz"}).'
        )


async def test_of_a_tool_that_its_server_has_withdrawn_that_is_said(offered, brokers):
    why = "any more: its server has withdrawn it."
    async with offered() as client:
        await client.list_tools()
        catalog = brokers[0].catalog
        gone, *others = [entry.spec for entry in catalog.of_server("desk")]
        assert gone.name == "add"
        catalog.replace("desk", others)
        for name in ("add", "desk.add", "desk__add"):
            with pytest.raises(MCPError) as caught:
                await client.call_tool(name, {"a": 1})
            said = f'There is no tool "{name}" {why} Nothing was executed.'
            assert caught.value.error.message.startswith(said)
            assert (await read(client, name))[name]["error"].startswith(f"There is no tool '{name}' {why}")
        catalog.replace("desk", [gone, *others])
        await read(client, "add")
        assert (await client.call_tool("add", {"a": 1})).structured_content == {"result": 3}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("call_tool", {"nam": "add"}), ("call_tool", {"name": [[]] * 500_000}), ("get_tool_details", {"tools": {}})],
)
async def test_wrong_arguments_of_the_head_are_said(offered, name, arguments):
    async with offered() as client:
        result = await client.call_tool(name, arguments)
        assert result.is_error
        assert result.content[0].text.startswith(f"{name} was not called:")


@pytest.mark.parametrize("name", HEAD)
async def test_a_tool_of_the_head_is_not_called_through_another(offered, name):
    async with offered() as client:
        result = await client.call_tool("call_tool", {"name": name, "arguments": {"query": "add"}})
    assert result.is_error
    assert result.content[0].text == (
        f"Nothing was executed: {name} is no tool of a server. Call {name} itself, not through call_tool."
    )


async def test_with_auto_all_tools_are_described_from_the_start_while_they_fit(offered):
    async with offered(disclosure=DisclosureSettings(describe="auto")) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert listed["add"].input_schema["required"] == ["a"]
        assert (await client.call_tool("add", {"a": 1})).structured_content == {"result": 3}
        assert "all tools are described from the start" in client.instructions
        assert ALL_DESCRIBED in await searched(client, {})
        assert ALL_DESCRIBED not in await searched(client, {"query": "numbers"})
    small = DisclosureSettings(describe="auto", context_share=0.01, context_tokens=1_000)
    async with offered(disclosure=small) as client:
        assert (await client.call_tool("add", {"a": 1})).is_error
        assert (await client.list_tools()).tools[3].input_schema == {"type": "object", "properties": {}}
        assert ALL_DESCRIBED not in await searched(client, {})


async def test_with_auto_a_tool_that_changes_after_it_was_listed_is_not_called_before_it_is_fetched(offered, brokers):
    async with offered(disclosure=DisclosureSettings(describe="auto")) as client:
        await client.list_tools()
        catalog = brokers[0].catalog
        first, *others = [entry.spec for entry in catalog.of_server("desk")]
        changed = replace(first, description="Adds numbers for a fee")
        catalog.replace("desk", [changed, *others])
        error = json.loads((await client.call_tool("add", {"a": 1})).content[0].text)["error"]
        assert error["code"] == "TOOL_DESCRIPTION_REQUIRED"
        assert "it has changed since its description was read (changed: its description)" in error["message"]
        assert (await client.call_tool("fail", {"reason": "closed"})).content[0].text.endswith("closed")
        await read(client, "add")
        # Nor does the grant hold any longer, which was given for the tool as it was.
        refused = (await client.call_tool("add", {"a": 1})).content[0].text
        assert refused.startswith("desk.add was not called: nobody has allowed it")


async def test_with_auto_tools_that_were_listed_stay_described_when_others_come_that_do_not_fit(offered, brokers):
    settings = DisclosureSettings(describe="auto", context_share=0.05, context_tokens=20_000)
    async with offered(disclosure=settings) as client:
        assert {tool.name: tool for tool in (await client.list_tools()).tools}["add"].input_schema["required"] == ["a"]
        known = [entry.spec for entry in brokers[0].catalog.of_server("desk")]
        large = replace(known[0], name="large", description="Adds numbers of many kinds. " * 1_000)
        brokers[0].catalog.replace("desk", [*known, large])
        assert ALL_DESCRIBED not in await searched(client, {})
        assert (await client.call_tool("add", {"a": 1})).structured_content == {"result": 3}
        error = json.loads((await client.call_tool("large", {"a": 1})).content[0].text)["error"]
        assert "large was not executed: its description has not been read yet" in error["message"]


async def test_other_spellings_and_whole_servers_are_answered_with_an_error_and_describe_nothing(offered):
    async with offered() as client:
        other = ["mcp__desk__add", "desk.Add", "desk", "desk.*"]
        details = await client.call_tool("get_tool_details", {"tools": other})
        entries = json.loads(details.content[0].text)
        assert (list(entries), ["error" in entry for entry in entries.values()]) == (other, [True] * 4)
        error = json.loads((await client.call_tool("add", {"a": 1})).content[0].text)["error"]
        assert error["code"] == "TOOL_DESCRIPTION_REQUIRED"
        found = await client.call_tool("get_tool_details", {"tools": ["add", "desk.fail"]})
        assert not any("error" in entry for entry in json.loads(found.content[0].text).values())


async def test_fetches_beyond_the_rate_are_refused_with_the_time_to_wait(offered):
    async with offered(disclosure=DisclosureSettings(fetches_per_minute=2)) as client:
        assert "add" in await read(client, "add")
        assert "fail" in await read(client, "fail")
        error = (await read(client, "wait"))["error"]
        assert (error["code"], 0 < error["retry_after_seconds"] <= 30) == ("TOO_MANY_FETCHES", True)
        search = await client.call_tool("search_tools", {"query": "numbers", "detail": "full"})
        assert search.is_error
        assert search.content[0].text.startswith("Too many descriptions were fetched; try again in")
        refused = await client.call_tool("wait", {})
        assert json.loads(refused.content[0].text)["error"]["code"] == "TOOL_DESCRIPTION_REQUIRED"


async def test_in_mode_code_the_resource_describes_tools_to_scripts(offered):
    async with offered(served_mode="code") as client:
        assert await names(client) == ["search_tools", "get_tool_details", "execute_code"]
        assert (await read(client, "desk.add"))["desk.add"]["inputSchema"]["required"] == ["a"]
        script = "from tools import desk\nawait desk.add(a=1)"
        assert (await client.call_tool("execute_code", {"code": script})).structured_content["value"] == 3


@pytest.mark.parametrize("served_mode", ["code", "tools"])
async def test_the_resource_knows_every_tool_that_is_listed(offered, served_mode):
    async with offered(served_mode=served_mode) as client:
        listed = {tool.name: tool for tool in (await client.list_tools(cache_mode="refresh")).tools}
        document = await read(client, *listed)
        assert list(document) == list(listed)
        for name in list(listed)[:3]:
            assert document[name]["description"] == listed[name].description
            assert document[name]["inputSchema"] == listed[name].input_schema


@pytest.mark.parametrize(
    ("served_mode", "way"),
    [("code", "Scripts of execute_code call the tools"), ("tools", "Before you call a tool, read")],
)
async def test_the_resource_says_how_tools_are_called_in_the_mode(offered, served_mode, way):
    async with offered(served_mode=served_mode) as client:
        [listed] = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
    [template] = [one for one in templates if one.name == listed.name]
    assert way in listed.description
    assert template.description == listed.description
    assert ("execute_code" in listed.description) is (served_mode == "code")


@pytest.mark.parametrize("served_mode", ["code", "tools"])
async def test_a_broker_can_be_the_server_of_another(desk_server, served_mode):
    far: dict[str, dict[str, Any]] = {"search_tools": {"query": "numbers"}, "get_tool_details": {"tools": ["desk.add"]}}
    far |= {"execute_code": {"code": "1"}} if served_mode == "code" else {"call_tool": {"name": "add"}, "add": {"a": 1}}
    with anyio.fail_after(60):
        async with Broker(servers={"desk": desk_server}) as inner:
            server = BrokerServer(inner, ServeSettings(mode=served_mode))
            async with Broker(servers={"far": server.mcp}, opens_sandbox=False) as outer:
                session = outer.session(grants=[Grant("*.*")])
                assert not any(entry.is_complete for entry in outer.catalog)
                details = await session.get_tool_details([f"far.{name}" for name in far])
                assert details.described == tuple(f"far.{name}" for name in far)
                for name, arguments in far.items():
                    result = await session.call_directly(f"far.{name}", arguments)
                    assert result.failed is None, name


async def test_a_cursor_is_of_this_listing_or_refused(offered, monkeypatch):
    monkeypatch.setattr("broker.server.tools_mode.PAGE_TOOLS", 2)
    async with offered() as client:
        first = await client.list_tools(cache_mode="refresh")
        second = await client.list_tools(cursor=first.next_cursor, cache_mode="refresh")
        assert [tool.name for tool in (*first.tools[3:], *second.tools)] == ["add", "fail", "wait"]
        assert second.next_cursor is None
        far = base64.urlsafe_b64encode(b"tools-listing:999999").decode()
        assert (await client.list_tools(cursor=far, cache_mode="refresh")).tools == []
        others = [
            base64.urlsafe_b64encode(text).decode() for text in (b"other:2", b"tools-listing:-1", b"tools-listing:1e3")
        ]
        for cursor in ("", "x", "\u0662", "A" * 1_000_000, *others):
            with pytest.raises(MCPError, match="The cursor"):
                await client.list_tools(cursor=cursor, cache_mode="refresh")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("get_tool_details", {"tools": "desk.add"}),
        ("get_tool_details", {"tools": '["desk.add"]', "session": None}),
        ("get_tool_details", {"tools": "desk.add, desk.wait", "session": ""}),
        ("call_tool", {"name": "add", "arguments": '{"a": 1}'}),
        ("call_tool", {"name": "add", "arguments": {"a": 1}, "session": None}),
        ("call_tool", {"name": "today", "arguments": None}),
        ("call_tool", {"name": "today", "arguments": ""}),
    ],
)
async def test_what_models_send_in_another_form_is_taken_as_it_is_meant(offered, desk_server, tool, arguments):
    @desk_server.tool()
    def today() -> str:
        """Tells the day."""
        return "Monday"

    async with offered() as client:
        if tool == "call_tool":
            await read(client, arguments["name"])
        answer = await client.call_tool(tool, arguments)
        assert not answer.is_error
        if tool == "get_tool_details":
            assert json.loads(answer.content[0].text)["desk.add"]["name"] == "desk.add"
        else:
            assert answer.structured_content["result"] in {3, "Monday"}


async def test_arguments_of_a_tool_of_a_server_are_taken_as_they_are(offered):
    async with offered() as client:
        await read(client, "fail")
        for arguments in ({"reason": None}, {"reason": 1}):
            for name, sent in (("fail", arguments), ("call_tool", {"name": "fail", "arguments": arguments})):
                answer = await client.call_tool(name, sent)
                assert (answer.is_error, "is not of type 'string'" in answer.content[0].text) == (True, True)
        for deep in ("[" * 900 + "]" * 900, "[" * 100_000):
            answer = await client.call_tool("call_tool", {"name": "fail", "arguments": f'{{"reason": {deep}}}'})
            assert (answer.is_error, "is not of type" in answer.content[0].text) == (True, True)


async def test_a_session_that_a_model_makes_up_is_ignored_and_said_to_be(offered):
    async with offered() as client:
        note = '"main" names no session, so your usual one was used.'
        details = await client.call_tool("get_tool_details", {"tools": ["add"], "session": "main"})
        assert "add" in json.loads(details.content[0].text)
        called = await client.call_tool("call_tool", {"name": "add", "arguments": {"a": 1}, "session": "main"})
        assert called.structured_content == {"result": 3}
        for answer in (details, called):
            assert (answer.is_error, answer.content[-1].text.startswith(note)) == (False, True)
        result = await client.read_resource(f"{URI}?tools=wait&session=main", cache_mode="refresh")
        assert list(json.loads(result.contents[0].text)) == ["wait"]
        unknown = await client.call_tool("get_tool_details", {"tools": ["add"], "session": "s_0"})
        assert (unknown.is_error, unknown.content[0].text[:24]) == (True, 'There is no session "s_0')


async def test_names_with_odd_characters_can_be_read(offered):
    async with offered() as client:
        document = await read(client, "%E2%98%83", "a%2Fb", "add")
        assert list(document) == ["☃", "a/b", "add"]
        assert "error" in document["a/b"]


async def test_a_uri_that_is_too_long_is_refused_whole_and_not_read_in_part(offered):
    async with offered() as client:
        with pytest.raises(MCPError, match=r"more than 50000 characters. Nothing was described. Read it with fewer"):
            await read(client, "add", *(f"tool_{number:05}" for number in range(5_000)))
        refused = await client.call_tool("add", {"a": 1, "b": 2})
        assert "TOOL_DESCRIPTION_REQUIRED" in refused.content[0].text
        assert len(await read(client, "add", *(f"tool_{number:05}" for number in range(4_000)))) == 4_001


async def test_names_in_one_encoded_text_are_read_apart_unless_a_tool_has_that_name():
    servers = {"one": says("one", "a,b", "a", "c")}
    with anyio.fail_after(60):
        async with (
            Broker(servers=servers, opens_sandbox=False) as broker,
            Client(BrokerServer(broker, ServeSettings(mode="tools")).mcp) as client,
        ):
            document = await read(client, "a%2Cc", "one.a%2Cb", "search_tools%2C%20none%2Ca%2C")
            nothing = await read(client, "%2C")
    assert list(document) == ["a", "c", "one.a,b", "search_tools", "none"]
    assert [name for name, entry in document.items() if "error" in entry] == ["none"]
    assert nothing["error"]["code"] == "MISSING_TOOL_SELECTION"


async def test_clients_are_told_once_when_what_they_were_listed_is_different(offered, brokers, mode):
    told, heard = [], anyio.Event()

    async def on_message(message):
        if isinstance(message, t.ToolListChangedNotification):
            told.append(message)
            heard.set()

    async with offered(client_options={"message_handler": on_message}) as client:
        before = await names(client)
        assert client.server_capabilities.tools.list_changed
        catalog = brokers[0].catalog
        specs = [entry.spec for entry in catalog.of_server("desk")]

        def storm():
            # The same tools, then one with another parameter: neither is listed. Then a hundred listings, one less.
            catalog.replace("desk", specs)
            catalog.replace("desk", [replace(specs[0], input_schema={"type": "object"}), *specs[1:]])
            for number in range(100):
                catalog.replace("desk", specs[: 3 - number % 2])

        if mode == "legacy":
            storm()
            await heard.wait()
        else:
            async with client.listen(tools_list_changed=True) as events:
                storm()
                async for _ in events:
                    break
                await heard.wait()
        assert await names(client) == before[:-1]
        assert len(told) == 1


async def test_in_mode_code_no_change_of_the_listing_is_promised(offered):
    async with offered(served_mode="code") as client:
        assert not client.server_capabilities.tools.list_changed


async def test_a_search_in_full_delivers_definitions_which_make_the_tools_callable(offered):
    async with offered() as client:
        reply = await client.call_tool("search_tools", {"query": "numbers", "detail": "full"})
        definition = json.loads(reply.content[0].text.splitlines()[0])
        assert (definition["name"], sorted(definition["inputSchema"]["properties"])) == ("desk.add", ["a", "b"])
        assert (await client.call_tool(definition["name"], {"a": 1})).structured_content == {"result": 3}


async def test_a_name_that_several_servers_have_is_said_to_be_of_several():
    servers = {name: says(name, "say") for name in ("one", "two")}
    async with Broker(servers=servers, opens_sandbox=False) as broker:
        make = BrokerServer(broker, ServeSettings(mode="tools"))
        async with Client(make.mcp) as client:
            document = await read(client, "say")
            assert document["say"] == {
                "error": "Several servers have a tool 'say'. Say which: one__say, two__say.",
                "available_tools": ["one__say", "two__say"],
            }
            with pytest.raises(
                MCPError, match=r'Several servers have "say"\. Nothing was executed\. Take "one__say" or'
            ):
                await client.call_tool("say", {})


@pytest.mark.parametrize("way", ["resource", "tool"])
async def test_a_read_keeps_to_its_budget_of_tokens_and_names_what_is_to_be_read_next(offered, brokers, way):
    async with offered() as client:
        tool = brokers[0].catalog.tools[0].spec
        long = {"type": "object", "properties": {f"parameter_{n}": {"type": "string"} for n in range(150)}}
        names = [f"desk.tool_{number}" for number in range(30)]
        brokers[0].catalog.replace("desk", [replace(tool, name=one[5:], input_schema=long) for one in names])
        left, reads = names, []
        while left:
            if way == "resource":
                document = await read(client, *left)
            else:
                answer = await client.call_tool("get_tool_details", {"tools": left})
                document = json.loads(answer.content[0].text)
            assert list(document) == left
            assert token_counter().count(json.dumps(document)) <= BUDGETS[Tier.FULL]
            reads.append([name for name in left if "inputSchema" in document[name]])
            left = left[len(reads[-1]) :]
            assert [document[name] for name in left] == [{"error": READ_NEXT}] * len(left)
        assert [name for read_now in reads for name in read_now] == names
        assert len(reads) > 1
