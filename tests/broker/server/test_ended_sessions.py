"""When the last session that used a lazy server ends, the server is disconnected; over real sockets."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

import anyio.lowlevel
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from broker import Broker, Config, Grant
from broker.server import BrokerServer, ServeSettings
from broker.server.identity import SESSION_HEADER
from broker.server.session_keeper import NEW, SessionKeeper
from broker.upstreams.server_config import ServerConfig
from broker.upstreams.used_servers import note_use
from tests.broker.conftest import FAULTY

ECHO = {"code": "from tools import idle\nawait idle.echo(text='hi')"}


@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    """Serving HTTP needs asyncio."""
    return request.param


@pytest.fixture
def process(tmp_path):
    """Where the lazy server notes its process."""
    return tmp_path / "pid"


@pytest.fixture
def reached(listening, process):
    """A broker with a lazy server, and what connects clients of the older era to it, each a session."""

    @asynccontextmanager
    async def reach():
        line = f"echo $$ > {shlex.quote(str(process))}; exec {shlex.quote(sys.executable)} -I {FAULTY} plain"
        idle = ServerConfig(command="sh", args=("-c", line), mode="legacy", lazy=True)
        async with Broker(Config(servers={"idle": idle})) as broker:
            server = BrokerServer(broker, ServeSettings(), make_session=lambda _: broker.session(grants=[Grant("*")]))
            async with listening(server) as url:
                yield broker, lambda: Client(streamable_http_client(url), mode="legacy")

    return reach


def state(broker):
    return broker.server_statuses()[0].state


async def until(broker, wanted):
    while state(broker) != wanted:
        await anyio.lowlevel.checkpoint()


async def use(client):
    await client.call_tool("get_tool_details", {"tools": ["idle.echo"]})
    assert (await client.call_tool("execute_code", ECHO)).structured_content["value"] == "hi"


async def surface(client):
    return client.instructions, (await client.list_tools(cache_mode="refresh")).tools


@pytest.mark.anyio
@pytest.mark.usefixtures("deadline")
async def test_the_last_session_that_ends_disconnects_the_lazy_server_that_it_used(reached, process):
    async with reached() as (broker, connect), connect() as bystander:
        before = await surface(bystander)
        async with connect() as other:
            async with connect() as first:
                await use(first)
                await use(other)
            await bystander.call_tool("execute_code", {"code": "1"})
            assert state(broker) == "ready"
            assert (await other.call_tool("execute_code", ECHO)).structured_content["value"] == "hi"
            number = int(process.read_text())
            os.kill(number, 0)
        await until(broker, "asleep")
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)
        assert await surface(bystander) == before
        await use(bystander)
        assert state(broker) == "ready"


class Sessions:
    """Sessions on a clock that is set, and the servers that were to be disconnected at their ends."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rested: list[list[str]] = []
        self.keeper = SessionKeeper(
            lambda _: cast("Any", None),
            most=2,
            idle_seconds=60,
            rest=lambda names: self.rested.append(sorted(names)),
            clock=lambda: self.now,
        )

    def use(self, handle, *servers):
        with self.keeper.using(cast("Any", None), handle) as (held, _):
            for server in servers:
                note_use(server)
        return held.handle


def test_sessions_that_are_idle_or_give_way_disconnect_what_no_other_has_used():
    sessions = Sessions()
    sessions.use(NEW, "a", "b")
    sessions.now = 30
    kept = sessions.use(NEW, "b", "c")
    sessions.now = 61
    sessions.keeper.sweep()
    assert sessions.rested == [["a"]]
    sessions.use(NEW, "c", "d")
    sessions.now = 62
    sessions.use(kept)
    sessions.now = 63
    sessions.use(NEW)
    assert sessions.rested == [["a"], ["d"]]
    sessions.now = 124
    sessions.keeper.sweep()
    assert sessions.rested == [["a"], ["d"], ["b", "c"]]


def test_a_session_that_ends_while_a_request_works_in_it_is_held_until_that_is_answered():
    sessions = Sessions()
    request = SimpleNamespace(headers={SESSION_HEADER: "one"})
    ctx = cast("Any", SimpleNamespace(request=request, protocol_version="2025-11-25"))
    with sessions.keeper.using(ctx, None), sessions.keeper.using(ctx, None):
        note_use("a")
        sessions.keeper.end("", "other")
        sessions.keeper.end("", "one")
        assert (sessions.rested, len(sessions.keeper)) == ([], 1)
    assert (sessions.rested, len(sessions.keeper)) == ([["a"]], 0)
    note_use("b")
    sessions.keeper.end("", "one")
    assert sessions.rested == [["a"]]


@pytest.mark.anyio
async def test_a_server_that_the_program_itself_has_used_stays_when_a_clients_session_ends(reached):
    with anyio.fail_after(60):
        async with reached() as (broker, client):
            own = broker.session(grants=[Grant("*")])
            await own.get_tool_details(["idle.echo"])
            async with client() as one:
                await use(one)
            assert state(broker) == "ready"
            assert broker.rest_lazy_servers() == ["idle"]
            async with client() as one:
                await use(one)
            await until(broker, "asleep")
