"""One principal opens all the sessions that it can, over real sockets: the others still get theirs, in both eras."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager

import anyio
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.broker.server.principals import PING, TOKENS, as_principal, opened

pytestmark = pytest.mark.anyio

SESSIONS = 4
FLOOD = 10


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """Serving HTTP needs asyncio."""
    return request.param


@pytest.fixture
def shared(served, listening):
    """Two principals at a server with room for few sessions: an HTTP client of each, and the URL."""

    @asynccontextmanager
    async def share():
        async with (
            served(tokens=TOKENS, sessions=SESSIONS) as server,
            listening(server) as url,
            as_principal("ada") as ada,
            as_principal("bob") as bob,
        ):
            yield ada, bob, url

    return share


async def pinged(http, url, connection):
    return (await http.post(url, json=PING, headers={"mcp-session-id": connection})).status_code


async def test_connections_of_one_principal_give_way_to_those_of_others(shared):
    async with shared() as (ada, bob, url):
        first = await opened(ada, url)
        flood = [await opened(bob, url) for _ in range(FLOOD)]
        second = await opened(ada, url)
        assert [await pinged(ada, url, one) for one in (first, second)] == [200, 200]
        assert [await pinged(bob, url, one) for one in flood] == [404] * (FLOOD - 2) + [200] * 2


async def test_a_connection_in_which_a_script_runs_gives_way_to_none(shared, started, calls):
    """Also where the others are held open by a stream each, and none of them is idle."""
    async with (
        shared() as (ada, bob, url),
        client_of(bob, url, "legacy") as his,
        AsyncExitStack() as streams,
        anyio.create_task_group() as tasks,
    ):
        await his.call_tool("get_tool_details", {"tools": ["desk.wait"]})
        tasks.start_soon(his.call_tool, "execute_code", {"code": "from tools import desk\nawait desk.wait()"})
        await started.wait()
        for _ in range(SESSIONS - 1):
            connection = {"mcp-session-id": await opened(bob, url)}
            stream = await streams.enter_async_context(bob.stream("GET", url, headers=connection, timeout=60))
            assert stream.status_code == 200
        for _ in range(FLOOD):
            await opened(ada, url)
        assert (await his.call_tool("execute_code", {"code": "1"})).structured_content["value"] == 1
        assert calls == [("wait",)]
        tasks.cancel_scope.cancel()


async def test_sessions_of_one_principal_give_way_to_those_of_others(shared):
    async with shared() as (ada, bob, url), client_of(ada, url) as hers, client_of(bob, url) as his:
        first = await begin(hers)
        flood = [await begin(his) for _ in range(FLOOD)]
        second = await begin(hers)
        assert [await is_known(hers, one) for one in (first, second)] == [True, True]
        assert [await is_known(his, one) for one in flood] == [False] * (FLOOD - 2) + [True] * 2


def client_of(http, url, mode="2026-07-28"):
    return Client(streamable_http_client(url, http_client=http), mode=mode)


async def begin(client):
    return (await client.call_tool("execute_code", {"code": "1", "session": "new"})).structured_content["session"]


async def is_known(client, session):
    return not (await client.call_tool("search_tools", {"query": "add", "session": session})).is_error
