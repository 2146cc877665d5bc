"""One principal takes all that it can of what is bounded, over real sockets: the others still get theirs."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

import anyio
import mcp.types as t
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from broker import Broker
from broker.server import BrokerServer, ServeSettings, asking
from broker.texts import tool_texts
from tests.broker.server.principals import PING, TOKENS, as_principal, opened

pytestmark = pytest.mark.anyio

ADD = "from tools import desk\nawait desk.add(a=1)"
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


async def test_a_request_that_is_sent_again_while_its_script_runs_is_not_executed_again(shared, started, calls):
    """Whether its client still waits for the answer or went away without it."""
    async with shared() as (ada, bob, url), anyio.create_task_group() as tasks:
        connection = {"mcp-session-id": await opened(ada, url), "mcp-protocol-version": "2025-11-25"}
        await ada.post(url, headers=connection, json=called(1, "get_tool_details", {"tools": ["desk.wait"]}))
        run = called(70, "execute_code", {"code": "from tools import desk\nawait desk.wait()"})
        listening = anyio.CancelScope()
        tasks.start_soon(within, listening, partial(ada.post, url, headers=connection, json=run, timeout=60))
        await started.wait()
        while_listened = await ada.post(url, headers=connection, json=run)
        listening.cancel()
        await anyio.wait_all_tasks_blocked()
        afterwards = await ada.post(url, headers=connection, json=run)
        of_another = await bob.post(url, headers=connection, json=run)
        assert (while_listened.status_code, afterwards.status_code, of_another.status_code) == (400, 400, 404)
        assert "was not executed" in while_listened.json()["error"]["message"]
        assert await pinged(ada, url, connection["mcp-session-id"]) == 200
        assert calls == [("wait",)]


@pytest.mark.parametrize("number", [1.5, None, True, [1]])
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_request_with_an_id_that_is_none_is_answered(shared, number, version):
    wrong = {**PING, "id": number}
    async with shared() as (ada, _, url):
        to_it = {} if version == "2026-07-28" else {"mcp-session-id": await opened(ada, url)}
        for headers in ({}, to_it):
            answer = await ada.post(url, headers={**headers, "mcp-protocol-version": version}, json=wrong)
            refused = answer.json()
            assert (answer.status_code, refused["id"], refused["error"]["code"]) == (400, None, -32600)
        said = {"jsonrpc": "2.0", "id": None, "method": "notifications/initialized"}
        if to_it:
            assert (await ada.post(url, headers=to_it, json=said)).status_code == 202


def called(number, tool, arguments):
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


async def within(scope, work):
    with scope:
        await work()


async def test_sessions_of_one_principal_give_way_to_those_of_others(shared):
    async with shared() as (ada, bob, url), client_of(ada, url) as hers, client_of(bob, url) as his:
        first = await begin(hers)
        flood = [await begin(his) for _ in range(FLOOD)]
        second = await begin(hers)
        assert [await is_known(hers, one) for one in (first, second)] == [True, True]
        assert [await is_known(his, one) for one in flood] == [False] * (FLOOD - 2) + [True] * 2


@pytest.mark.parametrize("name", ["main", "process", "new ", "principal ('ada', None, None)", "its handle without s_"])
async def test_no_name_that_a_caller_makes_up_leads_into_the_session_of_another(shared, name):
    async with shared() as (ada, bob, url), client_of(ada, url) as hers, client_of(bob, url) as his:
        handle = await begin(hers)
        for session in ({}, {"session": handle}):
            await hers.call_tool("get_tool_details", {"tools": ["desk.add"], **session})
        name = handle.removeprefix("s_") if name.startswith("its handle") else name
        made_up = await his.call_tool("execute_code", {"code": ADD, "session": name})
        foreign = await his.call_tool("execute_code", {"code": ADD, "session": handle})
        own = await hers.call_tool("execute_code", {"code": ADD, "session": handle})
    assert made_up.content[0].text.startswith("ToolDescriptionRequired")
    assert made_up.content[0].text.endswith(tool_texts.no_handle(name))
    assert (foreign.is_error, foreign.content[0].text) == (True, tool_texts.unknown_session(handle))
    assert own.structured_content["value"] == 3


async def test_a_caller_without_a_session_is_told_one_for_a_name_that_it_makes_up(served, listening):
    async with served() as server, listening(server) as url, client_of(None, url) as client:
        first = await client.call_tool("get_tool_details", {"tools": ["desk.add"], "session": "main"})
        handle = first.content[0].text.partition('session: "')[2].partition('"')[0]
        again = await client.call_tool("execute_code", {"code": ADD, "session": "main"})
        named = await client.call_tool("execute_code", {"code": ADD, "session": handle})
    assert again.content[0].text.startswith("ToolDescriptionRequired")
    assert named.structured_content["value"] == 3


def client_of(http, url, mode="2026-07-28", person=None):
    return Client(streamable_http_client(url, http_client=http), mode=mode, elicitation_callback=person)


async def begin(client):
    return (await client.call_tool("execute_code", {"code": "1", "session": "new"})).structured_content["session"]


async def is_known(client, session):
    return not (await client.call_tool("search_tools", {"query": "add", "session": session})).is_error


async def test_questions_of_one_principal_give_way_to_those_of_others(desk_server, listening, monkeypatch):
    monkeypatch.setattr(asking, "MAX_KEPT", SESSIONS)
    async with (
        Broker(servers={"desk": desk_server}) as broker,
        listening(BrokerServer(broker, ServeSettings(tokens=TOKENS))) as url,
        as_principal("ada") as ada,
        as_principal("bob") as bob,
        client_of(ada, url, person=nobody) as hers,
        client_of(bob, url, person=nobody) as his,
    ):
        for client in (hers, his):
            await client.call_tool("get_tool_details", {"tools": ["desk.add"]})
        first = await asked(hers, 0)
        flood = [await asked(his, number) for number in range(FLOOD)]
        second = await asked(hers, 1)
        assert [await answered(hers, *one) for one in (first, second)] == [2, 3]
        assert [await answered(his, *one) for one in flood] == [None] * (FLOOD - 2) + [FLOOD, FLOOD + 1]


async def nobody(_ctx, _params):
    raise NotImplementedError


async def asked(client, number):
    """Begin a run that waits for an answer; return its arguments and what was asked."""
    arguments = {"code": f"from tools import desk\nawait desk.add(a={number})"}
    return arguments, await client.session.call_tool("execute_code", arguments, allow_input_required=True)


async def answered(client, arguments, asked):
    """Allow what was asked; return what the run comes to, None where it does not wait any more."""
    yes = {
        key: t.ElicitResult(action="accept", content={"tool_1": "allow these calls"}) for key in asked.input_requests
    }
    try:
        result = await client.session.call_tool(
            "execute_code", arguments, input_responses=yes, request_state=asked.request_state
        )
    except MCPError:
        return None
    return result.structured_content["value"]
