"""Servers that are connected only while somebody needs them."""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest

from broker import Broker, Config, Grant
from broker.errors import UnavailableError

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("deadline")]


async def until_asleep(upstream) -> None:
    while upstream.status.state != "asleep":
        await anyio.lowlevel.checkpoint()


async def test_a_lazy_server_is_connected_by_the_first_call_and_can_rest(faulty, running):
    listings = []  # type: ignore[var-annotated]
    async with running(faulty("plain", lazy=True), listings) as upstream:
        assert (upstream.status.state, listings) == ("asleep", [])
        for _ in range(2):
            assert (await upstream.call_tool("echo", {"text": "a"}))["content"][0]["text"] == "a"
            assert upstream.status.state == "ready"
            assert upstream.rest()
            await until_asleep(upstream)
            assert upstream.status.problem is None
        assert not upstream.rest()
        assert upstream.status.tool_count == 1


async def test_a_lazy_server_rests_by_itself_when_nobody_uses_it(faulty, running):
    async with running(faulty("plain", lazy=True, idle_seconds=0.05)) as upstream:
        await upstream.needed()
        assert upstream.status.state == "ready"
        await until_asleep(upstream)


async def test_a_server_does_not_rest_while_a_call_is_open(faulty, running):
    async with running(faulty("hangs_in_call", lazy=True, idle_seconds=0.01)) as upstream:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(upstream.call_tool, "echo", {"text": "hang"})
            while upstream.status.state != "ready":
                await anyio.lowlevel.checkpoint()
            assert not upstream.rest()
            tasks.cancel_scope.cancel()
        await until_asleep(upstream)


async def test_whoever_needs_a_server_that_is_going_to_rest_gets_it(faulty, running):
    async with running(faulty("plain", lazy=True)) as upstream:
        await upstream.needed()
        assert upstream.rest()
        await upstream.needed()
        assert upstream.status.state == "ready"


async def test_a_lazy_server_that_cannot_start_is_not_tried_again_and_again(faulty, running):
    config = faulty("exits", lazy=True)
    async with running(config) as upstream:
        for _ in range(3):
            with pytest.raises(UnavailableError, match="it exited with code 3"):
                await upstream.call_tool("echo", {})
        assert upstream.status.state == "down"


async def test_a_server_that_is_not_lazy_never_rests(faulty, running):
    async with running(faulty("plain")) as upstream:
        assert not upstream.rest()
        assert upstream.status.state == "ready"


async def test_one_name_is_one_server(faulty):
    servers = {name: faulty("plain", lazy=True) for name in ("on", "one")}
    async with Broker(Config(servers=servers)) as broker:
        assert await broker.need_servers("one")
        assert [status.state for status in broker.server_statuses()] == ["asleep", "ready"]
        assert await broker.need_servers()
        assert broker.rest_lazy_servers("one") == ["one"]


async def test_a_script_wakes_the_servers_that_it_names_and_no_other(faulty):
    servers = {name: faulty("plain", lazy=True) for name in ("one", "two")}
    async with Broker(Config(servers=servers)) as broker:
        session = broker.session(grants=[Grant("one.*")])
        assert [status.state for status in broker.server_statuses()] == ["asleep", "asleep"]
        details = await session.get_tool_details(["one.echo"])
        assert details.described == ("one.echo",)
        assert broker.rest_lazy_servers() == ["one"]
        await until_asleep(broker._upstreams.by_name["one"])
        result = await session.execute_code('from tools import one\nawait one.echo(text="again")')
        assert (result.outcome, result.value) == ("completed", "again"), result.error
        assert [status.state for status in broker.server_statuses()] == ["ready", "asleep"]
