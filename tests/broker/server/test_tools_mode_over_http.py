"""Mode `tools` over HTTP without tokens, for clients of the newer era that pass no session on, as Claude Code."""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from broker import Broker, Config, Grant
from broker.disclosure.settings import DisclosureSettings
from broker.disclosure.tool_descriptions import SESSION_KEY
from broker.server import BrokerServer, ServeSettings

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """The HTTP server needs asyncio."""
    return request.param


HOW = r"Call get_tool_details with (.*), then call_tool with (.*) and its arguments\.$"


@pytest.fixture
def client(served, listening):
    """A client that is given no token."""

    @asynccontextmanager
    async def connect():
        async with served(mode="tools") as server, listening(server) as url, Client(url, mode="2026-07-28") as one:
            yield one

    return connect


async def test_a_model_that_does_what_the_answers_say_gets_its_call_made(client):
    async with client() as one:
        refused = await one.call_tool("add", {"a": 1})
        match: Any = re.search(HOW, json.loads(refused.content[0].text)["error"]["message"])
        told = await one.call_tool("get_tool_details", json.loads(match[1]))
        called = await one.call_tool("call_tool", json.loads(match[2]) | {"arguments": {"a": 1}})
    assert json.loads(told.content[0].text)["add"]["inputSchema"]["required"] == ["a"]
    assert (refused.is_error, called.structured_content) == (True, {"result": 3})


async def test_a_model_that_reads_descriptions_first_is_told_its_session_once(client):
    async with client() as one:
        told = await one.call_tool("get_tool_details", {"tools": ["add"]})
        match: Any = re.match(r'session: "(s_[0-9a-f]+)"', told.content[1].text)
        named = {"session": match[1]}
        called = await one.call_tool("call_tool", {"name": "add", "arguments": {"a": 1}, **named})
        again = await one.call_tool("get_tool_details", {"tools": ["add"], **named})
    assert (called.structured_content, len(again.content)) == ({"result": 3}, 1)


TOKENS = {"ada": "a" * 32, "bob": "b" * 32}


@pytest.fixture
def holder(desk_server, listening):
    """Makes clients of one server, each of the holder of a token, or of nobody."""

    @asynccontextmanager
    async def serve(tokens, fetches_per_minute=120):
        config = Config(disclosure=DisclosureSettings(fetches_per_minute=fetches_per_minute))
        with anyio.fail_after(60):
            async with Broker(config, servers={"desk": desk_server}, opens_sandbox=False) as broker:
                server = BrokerServer(
                    broker,
                    ServeSettings(mode="tools", tokens=tokens),
                    make_session=lambda principal: broker.session(grants=[Grant("*")], principal=principal),
                )
                async with listening(server) as url:
                    yield lambda name, mode="2026-07-28": connected_as(url, tokens.get(name), mode)

    return serve


@asynccontextmanager
async def connected_as(url, token, mode):
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as one,
    ):
        yield one


async def fetched(client, **named):
    answer = await client.call_tool("get_tool_details", {"tools": ["add"], **named})
    return "add" in json.loads(answer.content[0].text)


async def test_a_caller_with_a_token_fetches_no_more_by_other_sessions_and_takes_nothing_from_others(holder):
    async with holder(TOKENS, fetches_per_minute=3) as client_of:
        async with client_of("ada") as ada:
            assert [await fetched(ada, session="new") for _ in range(4)] == [True, True, True, False]
        for mode in ("legacy", "2026-07-28"):
            async with client_of("ada", mode) as ada:
                assert not await fetched(ada)
        async with client_of("bob") as bob:
            assert await fetched(bob)


async def test_a_definition_read_over_plain_http_is_a_fetch_of_the_same_caller(desk_server, listening):
    config = Config(disclosure=DisclosureSettings(fetches_per_minute=2))
    with anyio.fail_after(60):
        async with Broker(config, servers={"desk": desk_server}, opens_sandbox=False) as broker:
            server = BrokerServer(broker, ServeSettings(mode="tools", tokens=TOKENS))
            headers = {"Authorization": f"Bearer {TOKENS['ada']}"}
            async with (
                listening(server) as url,
                httpx2.AsyncClient(headers=headers, timeout=60) as http,
                connected_as(url, TOKENS["ada"], "2026-07-28") as ada,
                connected_as(url, TOKENS["bob"], "2026-07-28") as bob,
            ):
                path = f"{url.removesuffix('/mcp')}/api/v1/tools/desk/add"
                assert (await http.get(path)).status_code == 200
                assert [await fetched(ada) for _ in range(2)] == [True, False]
                assert (await http.get(path)).status_code == 429
                assert await fetched(bob)


async def test_callers_without_tokens_share_one_rate_in_either_era(holder):
    async with holder({}, fetches_per_minute=3) as client_of:
        async with client_of("anybody") as one:
            assert [await fetched(one) for _ in range(3)] == [True] * 3
            assert not await fetched(one)
        for mode in ("legacy", "2026-07-28"):
            async with client_of("anybody", mode) as other:
                assert not await fetched(other)


async def test_two_clients_of_one_token_share_descriptions_unless_one_begins_a_session_of_its_own(holder):
    call = {"name": "add", "arguments": {"a": 1}}
    async with holder(TOKENS) as client_of, client_of("ada") as first, client_of("ada") as second:
        assert await fetched(first)
        assert (await second.call_tool("call_tool", call)).structured_content == {"result": 3}
        refused = await second.call_tool("call_tool", call, meta={SESSION_KEY: "new"})
        own = {SESSION_KEY: refused.meta[SESSION_KEY]}
        assert json.loads(refused.content[0].text)["error"]["code"] == "TOOL_DESCRIPTION_REQUIRED"
        assert (await second.call_tool("call_tool", call, meta=own)).is_error
        read = await second.read_resource("resource:///tool_descriptions?tools=add", meta=own)
        called = await second.call_tool("call_tool", call, meta=own)
    assert list(json.loads(read.contents[0].text)) == ["add"]
    assert (called.structured_content, SESSION_KEY in (called.meta or {})) == ({"result": 3}, False)
