"""One principal answers what another was asked, over real sockets, knowing all that names it; then the other does."""

from __future__ import annotations

from contextlib import asynccontextmanager

import anyio
import mcp.types as t
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from broker import Broker
from broker.server import BrokerServer, ServeSettings
from tests.broker.server.principals import TOKENS, as_principal, opened

pytestmark = pytest.mark.anyio

ARGUMENTS = {"code": "from tools import desk\nawait desk.add(a=1)"}
YES = {"action": "accept", "content": {"tool_1": "allow these calls"}}


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """Serving HTTP needs asyncio."""
    return request.param


@pytest.fixture
def shared(desk_server, listening):
    """The URL of a broker in which nothing is allowed, and an HTTP client of each principal."""

    @asynccontextmanager
    async def share():
        with anyio.fail_after(60):
            async with (
                Broker(servers={"desk": desk_server}) as broker,
                listening(BrokerServer(broker, ServeSettings(tokens=TOKENS))) as url,
                as_principal("ada") as ada,
                as_principal("bob") as bob,
            ):
                yield url, ada, bob

    return share


async def test_who_knows_the_state_of_a_run_of_another_goes_on_with_none(shared, calls):
    async with shared() as (url, ada, bob), client_of(url, ada) as hers, client_of(url, bob) as his:
        for client in (hers, his):
            await client.call_tool("get_tool_details", {"tools": ["desk.add"]})
        asked = await hers.session.call_tool("execute_code", ARGUMENTS, allow_input_required=True)
        answers = {key: t.ElicitResult.model_validate(YES) for key in asked.input_requests}
        given = {"input_responses": answers, "request_state": asked.request_state}
        with pytest.raises(MCPError, match="of no run that waits"):
            await his.session.call_tool("execute_code", ARGUMENTS, **given)
        own = await his.session.call_tool("execute_code", ARGUMENTS, input_responses=answers, allow_input_required=True)
        assert isinstance(own, t.InputRequiredResult)
        assert calls == []
        assert (await hers.session.call_tool("execute_code", ARGUMENTS, **given)).structured_content["value"] == 3
    assert calls == [("add", 1, 2)]


async def test_an_answer_over_a_connection_of_another_is_none(shared, calls):
    """The ids of requests are small numbers on each connection."""
    tried: list[tuple[bool, int]] = []
    connections: list[str] = []
    async with shared() as (url, ada, bob):

        async def person(_ctx, _params):
            for connection in (connections[-1], await opened(bob, url)):
                for number in range(20):
                    answer = {"jsonrpc": "2.0", "id": number, "result": YES}
                    got = await bob.post(url, json=answer, headers={"mcp-session-id": connection})
                    tried.append((connection == connections[-1], got.status_code))
            assert calls == []
            return t.ElicitResult(action="decline")

        async def note(response):
            if "mcp-session-id" in response.headers:
                connections.append(response.headers["mcp-session-id"])

        ada.event_hooks = {"response": [note]}
        async with client_of(url, ada, person, "legacy") as hers:
            await hers.call_tool("get_tool_details", {"tools": ["desk.add"]})
            result = await hers.call_tool("execute_code", ARGUMENTS)
    assert set(tried) == {(True, 404), (False, 202)}
    assert result.structured_content["error"]["type"] == "ToolRefusedError"
    assert calls == []


async def test_the_answer_of_whom_it_was_asked_counts(shared, calls):
    async def person(_ctx, _params):
        return t.ElicitResult.model_validate(YES)

    async with shared() as (url, ada, _), client_of(url, ada, person, "legacy") as hers:
        await hers.call_tool("get_tool_details", {"tools": ["desk.add"]})
        assert (await hers.call_tool("execute_code", ARGUMENTS)).structured_content["value"] == 3
    assert calls == [("add", 1, 2)]


async def nobody(_ctx, _params):
    raise NotImplementedError


def client_of(url, http, person=nobody, mode="2026-07-28"):
    return Client(streamable_http_client(url, http_client=http), mode=mode, elicitation_callback=person)
